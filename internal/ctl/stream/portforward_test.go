package stream

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"minik8s/internal/ctl/exit"
)

var web = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c",
	Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}, {Name: "dns", ContainerPort: 53, Protocol: corev1.ProtocolUDP}}}}}}

func service(clusterIP string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.ServiceSpec{ClusterIP: clusterIP, Ports: []corev1.ServicePort{
		{Name: "named", Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromString("http")},
		{Name: "number", Port: 81, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(9000)},
		{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP, TargetPort: intstr.FromInt32(53)}}}}
}

func TestPorts(t *testing.T) {
	for _, x := range []struct {
		arg  string
		svc  *corev1.Service
		want PortPair
	}{
		{"80", nil, PortPair{80, 80}}, {"8080:80", nil, PortPair{8080, 80}}, {":80", nil, PortPair{0, 80}}, {"0:80", nil, PortPair{0, 80}},
		{"http", nil, PortPair{8080, 8080}}, {"9:http", nil, PortPair{9, 8080}},
		{"80", service("10.96.0.1"), PortPair{80, 8080}}, {"named", service("10.96.0.1"), PortPair{80, 8080}}, {":named", service("10.96.0.1"), PortPair{0, 8080}},
		{"81", service("10.96.0.1"), PortPair{81, 9000}}, {"7:number", service("10.96.0.1"), PortPair{7, 9000}},
		{"81", service("None"), PortPair{81, 81}}, {"80", service("None"), PortPair{80, 8080}},
	} {
		w, err := ParseWanted(x.arg)
		if err != nil {
			t.Errorf("%s: %v", x.arg, err)
			continue
		}
		if got, err := w.Pair(x.svc, web); err != nil || got != x.want {
			t.Errorf("%s: %v, %v, want %v", x.arg, got, err, x.want)
		}
	}
	for _, arg := range []string{"", "80:", "0", "70000", "1:2:3", "x:80", "-1", ":"} {
		if _, err := ParseWanted(arg); exit.CodeOf(err) != exit.Usage {
			t.Errorf("%q: %v", arg, err)
		}
	}
	for arg, svc := range map[string]*corev1.Service{"none": nil, "dns": nil, "53": service("10.96.0.1"), "82": service("10.96.0.1"), "other": service("10.96.0.1")} {
		w, err := ParseWanted(arg)
		if err != nil {
			t.Fatal(err)
		}
		if pair, err := w.Pair(svc, web); exit.CodeOf(err) != exit.Usage {
			t.Errorf("%s: %v, %v", arg, pair, err)
		}
	}
}
