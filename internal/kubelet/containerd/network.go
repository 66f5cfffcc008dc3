package containerd

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/kubelet/containerd/sandbox"
	"minik8s/internal/kubelet/cri"
)

// Network is what the runtime needs of the pods' network. The network knows a sandbox only by its id.
type Network interface {
	sandbox.Network // to connect and disconnect sandboxes

	// AddHostPorts forwards ports of the host to a sandbox, all or none. It is an error if another sandbox has one of
	// them.
	AddHostPorts(sandbox string, addr netip.Addr, ports []corev1.ContainerPort) error
	// Restore registers a sandbox of an earlier run, which is still connected.
	Restore(sandbox string, addr netip.Addr)
	// Sweep removes the links of all other sandboxes than these.
	Sweep(sandboxes []string) error
	// LinkName is the name of the host's end of a sandbox's link.
	LinkName(sandbox string) string
	// HostAddrs are the node's own addresses, the primary one first.
	HostAddrs() []netip.Addr
}

func hostPorts(in []cri.HostPort) []corev1.ContainerPort {
	var out []corev1.ContainerPort
	for _, p := range in {
		out = append(out, corev1.ContainerPort{HostIP: p.HostIP, HostPort: p.HostPort, ContainerPort: p.ContainerPort, Protocol: corev1.Protocol(p.Protocol)})
	}
	return out
}
