package ctl

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"minik8s/internal/ctl/why/whytest"
)

// The cluster's own services are those that are marked; each with the link by which it is reached.
func TestClusterInfo(t *testing.T) {
	make := func(name string, labels map[string]string, ports ...corev1.ServicePort) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, Labels: labels}, Spec: corev1.ServiceSpec{Ports: ports}}
	}
	marked := map[string]string{"kubernetes.io/cluster-service": "true"}
	balanced := make("balanced", marked, corev1.ServicePort{Name: "https", Port: 8443})
	balanced.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.9"}}
	f := newFake(t, make("dash", marked, corev1.ServicePort{Port: 443}), balanced,
		make("kube-dns", map[string]string{"kubernetes.io/cluster-service": "true", "kubernetes.io/name": "DNS"}, corev1.ServicePort{Name: "dns", Port: 53}))
	got := f.ctl("", "cluster-info")
	for _, want := range []string{"The control plane is running at http://127.0.0.1:", "DNS is running at http://127.0.0.1:",
		"/api/v1/namespaces/kube-system/services/kube-dns:dns/proxy\n", "/api/v1/namespaces/kube-system/services/https:dash:/proxy\n", "https://192.0.2.9:8443\n"} {
		if got.code != 0 || !strings.Contains(got.out, want) {
			t.Errorf("without %q: %+v", want, got)
		}
	}
	if asked := strings.Join(f.calls, " "); !strings.Contains(asked, "labelSelector=kubernetes.io%2Fcluster-service%3Dtrue") {
		t.Errorf("asked: %s", asked)
	}
}

// port-forward to a Service or a workload takes a pod that runs, the one that is ready first, and says why there is none.
func TestPortForwardChoosesAPod(t *testing.T) {
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(8080)}}}}
	alone := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "alone"}}
	unready := whytest.PodOf("a", "", nil)
	unready.Status.Phase, unready.Status.Conditions = corev1.PodRunning, nil
	ready := whytest.PodOf("b", "", nil)
	ready.Status.Phase = corev1.PodRunning
	ready.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	f := newFake(t, svc, alone, unready, ready)
	for _, x := range []struct {
		args, says string
		code       int
	}{
		{"svc/web 80", "pods/b/portforward", 3}, // the fake serves no streams: what is asked for counts
		{"service/web :http", "pods/b/portforward", 3},
		{"b 80", "pods/b/portforward", 3},
		{"svc/web 81", "service web has no TCP port 81; it has 80 http", 2},
		{"svc/alone 80", "selects no pods by labels", 2},
		{"svc/none 80", `service "none" not found`, 3},
		{"node/n 80", "leads to pods, services and workloads", 2},
	} {
		f.calls = nil
		got := f.ctl("", append([]string{"port-forward"}, strings.Fields(x.args)...)...)
		if all := got.text + strings.Join(f.calls, " "); got.code != x.code || !strings.Contains(all, x.says) {
			t.Errorf("%s: %+v %s", x.args, got, f.calls)
		}
	}
	f = newFake(t, svc)
	if got := f.ctl("", "port-forward", "svc/web", "80"); got.code != 1 || !strings.Contains(got.text, "none of the 0 pods of service/web runs") || !strings.Contains(got.text, "why service web") {
		t.Errorf("%+v", got)
	}
}
