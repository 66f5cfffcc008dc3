package placement

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Two host ports clash by address and protocol.
func TestPortsClash(t *testing.T) {
	at := func(ip string, protocol corev1.Protocol) corev1.ContainerPort {
		return corev1.ContainerPort{HostPort: 80, HostIP: ip, Protocol: protocol}
	}
	for _, x := range []struct {
		a, b corev1.ContainerPort
		want bool
	}{
		{at("", ""), at("", corev1.ProtocolTCP), true},
		{at("", corev1.ProtocolUDP), at("", corev1.ProtocolTCP), false},
		{at("10.0.0.1", ""), at("10.0.0.2", ""), false},
		{at("10.0.0.1", ""), at("0.0.0.0", ""), true},
		{at("", ""), corev1.ContainerPort{HostPort: 81}, false},
	} {
		if got := PortsClash(x.a, x.b); got != x.want {
			t.Errorf("%+v, %+v: %v", x.a, x.b, got)
		}
	}
}
