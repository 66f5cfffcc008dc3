package containerd

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/cri"
)

// Network is what the runtime asks of the pods' network. A sandbox is named by its id there.
type Network interface {
	// Ready says whether sandboxes can be connected. They cannot until the node has a pod range.
	Ready() bool
	// Connect gives the network namespace of the calling thread, which is locked to its goroutine, a link to the
	// host and an address. What it leaves behind on an error goes with the namespace.
	Connect(sandbox string) (netip.Addr, error)
	// Disconnect frees the address and removes the sandbox's host ports. The link goes with its namespace. For
	// what is not connected it does nothing.
	Disconnect(sandbox string, addr netip.Addr) error
	// AddHostPorts forwards ports of the host to a sandbox, all or none. A port that another sandbox has is an error.
	AddHostPorts(sandbox string, addr netip.Addr, ports []corev1.ContainerPort) error
	// Restore tells of a sandbox of an earlier run, which is still connected.
	Restore(sandbox string, addr netip.Addr)
	// Sweep removes the links of all other sandboxes than these.
	Sweep(sandboxes []string) error
	// HostAddrs are the node's own addresses, the foremost first.
	HostAddrs() []netip.Addr
}

func hostPorts(in []cri.HostPort) []corev1.ContainerPort {
	var out []corev1.ContainerPort
	for _, p := range in {
		out = append(out, corev1.ContainerPort{HostIP: p.HostIP, HostPort: p.HostPort, ContainerPort: p.ContainerPort, Protocol: corev1.Protocol(p.Protocol)})
	}
	return out
}
