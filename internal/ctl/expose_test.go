package ctl

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/ctl/exit"
)

// ctl expose makes the Service that kubectl expose makes, and describe shows where it leads.
func TestExpose(t *testing.T) {
	web := pod("default", "web")
	web.Labels = map[string]string{"app": "web"}
	web.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, Protocol: corev1.ProtocolTCP}, {ContainerPort: 53, Protocol: corev1.ProtocolUDP}}
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "third-1", Labels: map[string]string{discoveryv1.LabelServiceName: "third"}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(8080))}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.244.0.2"}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "web"}},
			{Addresses: []string{"10.244.0.3"}, Conditions: discoveryv1.EndpointConditions{Ready: new(false)}}}}
	f := newFake(t, web, pod("default", "plain"), slice)
	if got := f.ctl("", "expose", "pod", "web"); got.code != 0 || !strings.Contains(got.out, "service/web exposed") {
		t.Fatalf("%+v", got)
	}
	svc := f.get("/api/v1/namespaces/default/services/web").(*corev1.Service)
	if p := svc.Spec.Ports; len(p) != 2 || p[0].Port != 80 || p[0].Name != "port-1" || p[1].Protocol != corev1.ProtocolUDP || svc.Spec.Selector["app"] != "web" || svc.Labels["app"] != "web" {
		t.Errorf("%+v", svc)
	}
	for _, x := range []struct {
		args, want string
		code       int
	}{
		{"expose pod web", "service/web exists already", exit.Conflict},
		{"expose pod plain --port 80", "has no labels by which its pods could be found", exit.Usage},
		{"expose pod plain --selector a=b", "declares no ports: give one with --port", exit.Usage},
		{"expose pod plain --selector a=b --port 99999", "expected a number from 1 to 65535", exit.Usage},
		{"expose pod web --name second --port 80,81 --target-port http --type NodePort", "service/second exposed", 0},
		{"expose svc second --name third --cluster-ip 10.6.0.1 --port 80", "service/third exposed at 10.6.0.1", 0},
	} {
		if got := f.ctl("", strings.Fields(x.args)...); got.code != x.code || !strings.Contains(got.out+got.text, x.want) {
			t.Errorf("%s: %+v", x.args, got)
		}
	}
	for _, want := range []string{"10.6.0.1", "Port 80/TCP:", "80/TCP", "10.244.0.2:8080 (web)", "10.244.0.3:8080", "app=web"} {
		if got := f.ctl("", "describe", "service", "third").out; !strings.Contains(got, want) {
			t.Errorf("describe does not show %s:\n%s", want, got)
		}
	}
	if got := f.ctl("", "describe", "endpointslice", "third-1").out; !strings.Contains(got, "not ready") || !strings.Contains(got, "pod web") {
		t.Error(got)
	}
}
