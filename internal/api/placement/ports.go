package placement

import (
	corev1 "k8s.io/api/core/v1"
)

// PortsClash says whether two host ports cannot be on one node: a port without an address is on all of them.
func PortsClash(a, b corev1.ContainerPort) bool {
	everywhere := func(ip string) bool { return ip == "" || ip == "0.0.0.0" || ip == "::" }
	return a.HostPort == b.HostPort && Protocol(a) == Protocol(b) &&
		(a.HostIP == b.HostIP || everywhere(a.HostIP) || everywhere(b.HostIP))
}

// Protocol is a port's; one that names none is TCP.
func Protocol(p corev1.ContainerPort) corev1.Protocol {
	if p.Protocol == "" {
		return corev1.ProtocolTCP
	}
	return p.Protocol
}
