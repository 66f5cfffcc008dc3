package placement

import (
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/podspec"
)

// Port is a port of the node that a pod uses. Equal ports are equal values.
type Port struct {
	IP       string // "" is every address
	Protocol corev1.Protocol
	Port     int32
}

// Clashes reports whether two host ports cannot be on the same node. A port without an address is on all addresses.
func (a Port) Clashes(b Port) bool {
	return a.Port == b.Port && a.Protocol == b.Protocol && (a.IP == b.IP || a.IP == "" || b.IP == "")
}

// HostPorts returns the host ports that a pod uses for as long as it runs: those of its containers and sidecars. Other
// init containers end before and are not counted. With hostNetwork every port of a container is a host port.
func HostPorts(spec *corev1.PodSpec) []Port {
	var out []Port
	for i := range spec.Containers {
		out = appendHostPorts(out, spec, &spec.Containers[i])
	}
	for i := range spec.InitContainers {
		if podspec.IsSidecar(&spec.InitContainers[i]) {
			out = appendHostPorts(out, spec, &spec.InitContainers[i])
		}
	}
	return out
}

func appendHostPorts(out []Port, spec *corev1.PodSpec, c *corev1.Container) []Port {
	for i := range c.Ports {
		p := &c.Ports[i]
		port := p.HostPort
		if port == 0 && spec.HostNetwork {
			port = p.ContainerPort
		}
		if port <= 0 {
			continue
		}
		ip := p.HostIP
		if ip == "0.0.0.0" || ip == "::" {
			ip = ""
		}
		out = append(out, Port{ip, Protocol(*p), port})
	}
	return out
}

// Protocol returns the protocol of a port; TCP if it names none.
func Protocol(p corev1.ContainerPort) corev1.Protocol {
	if p.Protocol == "" {
		return corev1.ProtocolTCP
	}
	return p.Protocol
}
