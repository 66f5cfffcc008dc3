package placement

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Whether two host ports clash depends on address and protocol.
func TestPortsClash(t *testing.T) {
	at := func(ip string, protocol corev1.Protocol) corev1.ContainerPort {
		return corev1.ContainerPort{HostPort: 80, HostIP: ip, Protocol: protocol}
	}
	of := func(p corev1.ContainerPort) Port {
		return HostPorts(&corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{p}}}})[0]
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
		if got := of(x.a).Clashes(of(x.b)); got != x.want {
			t.Errorf("%+v, %+v: %v", x.a, x.b, got)
		}
	}
}

// Only containers that run as long as the pod keep a port. With hostNetwork every port is a host port.
func TestHostPorts(t *testing.T) {
	for _, x := range []struct {
		name, spec string
		want       []Port
	}{
		{"containers", "containers: [{ports: [{hostPort: 80}, {containerPort: 81}]}, {ports: [{hostPort: 82, protocol: UDP, hostIP: '::'}]}]",
			[]Port{{"", corev1.ProtocolTCP, 80}, {"", corev1.ProtocolUDP, 82}}},
		{"an init container", "initContainers: [{ports: [{hostPort: 80}]}]", nil},
		{"a sidecar", "initContainers: [{restartPolicy: Always, ports: [{hostPort: 80, hostIP: 10.0.0.1}]}]", []Port{{"10.0.0.1", corev1.ProtocolTCP, 80}}},
		{"the host's network", "hostNetwork: true\ncontainers: [{ports: [{containerPort: 80}]}]", []Port{{"", corev1.ProtocolTCP, 80}}},
	} {
		if got := HostPorts(fromYAML[corev1.PodSpec](t, x.spec)); !slices.Equal(got, x.want) {
			t.Errorf("%s: %v", x.name, got)
		}
	}
}
