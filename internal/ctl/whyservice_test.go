package ctl

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"minik8s/internal/api"
	"minik8s/internal/ctl/why/whytest"
	"minik8s/internal/proxy/report"
)

// serviceFixture is a Service with two pods that it selects, of which one is ready.
func serviceFixture() (svc *corev1.Service, pods []*corev1.Pod, slice *discoveryv1.EndpointSlice) {
	svc = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort,
		ClusterIP: "10.96.0.7", Selector: map[string]string{"app": "web"},
		Ports: []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromString("http"), NodePort: 30080}}}}
	pod := func(name, ip string, ready bool) *corev1.Pod {
		p := whytest.PodOf(name, "", nil)
		p.Spec.NodeName = "n"
		p.Spec.Containers = []corev1.Container{{Name: "web", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ok", Port: intstr.FromInt32(8080)}}}}}
		p.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip, ContainerStatuses: []corev1.ContainerStatus{{Name: "web", Ready: ready, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}
		status := corev1.ConditionFalse
		if ready {
			status = corev1.ConditionTrue
		}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
		return p
	}
	pods = []*corev1.Pod{pod("a", "10.244.0.5", true), pod("b", "10.244.0.6", false)}
	slice = &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(8080)), Protocol: new(corev1.ProtocolTCP)}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.244.0.5"}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "a"}},
			{Addresses: []string{"10.244.0.6"}, Conditions: discoveryv1.EndpointConditions{Ready: new(false)}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "b"}}}}
	return svc, pods, slice
}

func kubeletNode(name string) *corev1.Node {
	n := whytest.GoodNode(name)
	n.Status.DaemonEndpoints.KubeletEndpoint.Port = 10250
	return n
}

// says makes a node say what it does with the Service.
func (f *fakeAPI) says(node string, r report.Service) {
	r.Node = node
	f.routes["GET /api/v1/nodes/"+node+"/proxy/minik8s/services/default/web"] = func(w http.ResponseWriter, _ *http.Request) { json.NewEncoder(w).Encode(r) }
}

func ends(list ...string) (out report.Outcome) {
	for _, a := range list {
		out.Endpoints = append(out.Endpoints, netip.MustParseAddrPort(a))
	}
	return out
}

func call(from string, wanted, kernel report.Outcome) report.Call {
	return report.Call{Protocol: "TCP", At: netip.MustParseAddrPort("10.96.0.7:80"), From: from, Wanted: wanted, Kernel: kernel}
}

// All steps for a Service: its pods, why one is no endpoint, its policies, and what each node's kernel does.
func TestWhyService(t *testing.T) {
	svc, pods, slice := serviceFixture()
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "e"}, Type: corev1.EventTypeWarning, Reason: "Unhealthy",
		Message: "Readiness probe failed: HTTP probe failed with statuscode: 500", LastTimestamp: metav1.NewTime(testTime),
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "b", UID: "b"}}
	pods[1].UID = "b"
	deny := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "deny"}}
	other := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other"}, Spec: networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}}}
	out := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "out"}, Spec: networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}}}
	master := whytest.GoodNode("m")
	right := ends("10.244.0.5:8080")
	for _, x := range []struct {
		name    string
		reports map[string]report.Service // of node n and n2
		want    []string
		not     []string
	}{
		{"all agree", map[string]report.Service{"n": {Known: true, Calls: []report.Call{call("pods", right, right)}}, "n2": {Known: true, Calls: []report.Call{call("pods", right, right)}}},
			[]string{"service/web leads to 1 of the 2 pods that it selects", "80/TCP (http) at 10.96.0.7, every node's port 30080 -> the pods' port http",
				"a  10.244.0.5:8080 on n", "b  is not ready: the readiness probe of container web (GET :8080/ok) does not succeed; Readiness probe failed: HTTP probe failed with statuscode: 500",
				"networkpolicy.networking.k8s.io/deny says who may reach a, b", "agrees on n, n2", "not asked: m (there is no kubelet)", "minik8sd ctl why pod b"},
			[]string{"/other", "/out", "not every node"}},
		{"one differs", map[string]report.Service{"n": {Known: true, Calls: []report.Call{call("pods", right, right)}}, "n2": {Known: true, Calls: []report.Call{call("pods", right, ends("10.244.0.9:8080"))}}},
			[]string{"agrees on n\n", "n2: 10.96.0.7:80/TCP, called from pods: the kernel leads it to 10.244.0.9:8080, the proxy wants 10.244.0.5:8080", "not every node"}, nil},
		{"one lags", map[string]report.Service{"n": {Known: true, Calls: []report.Call{call("pods", report.Outcome{Otherwise: []string{"refused"}}, report.Outcome{Otherwise: []string{"refused"}})}}, "n2": {Why: "the proxy of this node leads nobody to it"}},
			[]string{"n: 10.96.0.7:80/TCP, called from pods: it has not heard of the endpoint 10.244.0.5:8080 yet", "n2: the proxy of this node leads nobody to it"}, []string{"agrees"}},
		{"one is stale, one has no rules", map[string]report.Service{"n": {Known: true, Calls: []report.Call{call("pods", ends("10.244.0.5:8080", "10.244.0.77:8080"), ends("10.244.0.5:8080", "10.244.0.77:8080"))}},
			"n2": {Known: true, Calls: []report.Call{{Protocol: "TCP", At: netip.MustParseAddrPort("10.96.0.7:80"), From: "host", Wanted: right, Error: "the kernel has no base chain output"}}}},
			[]string{"it still leads to 10.244.0.77:8080, which is no endpoint any more", "n2: 10.96.0.7:80/TCP, called from host: the kernel has no base chain output"}, nil},
		{"one cannot be asked", map[string]report.Service{"n": {Known: true, Calls: []report.Call{call("pods", right, right)}}},
			[]string{"agrees on n\n", "n2: cannot be asked: "}, nil},
	} {
		f := newFake(t, svc, pods[0], pods[1], slice, event, deny, other, out, kubeletNode("n"), kubeletNode("n2"), master)
		for node, r := range x.reports {
			f.says(node, r)
		}
		r := f.ctl("", "why", "service", "web")
		for _, want := range x.want {
			if r.code != 0 || !strings.Contains(r.out, want) {
				t.Errorf("%s: without %q: %s\n%s", x.name, want, r.text, r.out)
			}
		}
		for _, not := range append(x.not, " m:", "m2") {
			if strings.Contains(r.out, not) {
				t.Errorf("%s: with %q\n%s", x.name, not, r.out)
			}
		}
	}
}

// Why a Service leads nowhere, or not to all of its pods.
func TestWhyServiceLeadsNowhere(t *testing.T) {
	for name, x := range map[string]struct {
		change func(svc *corev1.Service, pods []*corev1.Pod, slice *discoveryv1.EndpointSlice)
		want   []string
	}{
		"another label": {func(svc *corev1.Service, _ []*corev1.Pod, s *discoveryv1.EndpointSlice) {
			svc.Spec.Selector, s.Endpoints = map[string]string{"app": "wbe"}, nil
		}, []string{"leads nowhere: no pod of its namespace has the labels app=wbe", "pod a has app=web; wanted: app=wbe", "minik8sd ctl get pods --show-labels"}},
		"a label too many": {func(svc *corev1.Service, _ []*corev1.Pod, s *discoveryv1.EndpointSlice) {
			svc.Spec.Selector["tier"], s.Endpoints = "front", nil
		}, []string{"pod a has no label tier; wanted: tier=front"}},
		"another namespace": {func(_ *corev1.Service, pods []*corev1.Pod, s *discoveryv1.EndpointSlice) {
			pods[0].Namespace, pods[1].Namespace, s.Endpoints = "team", "team", nil
		}, []string{"namespace team has 2 pods with these labels; a service leads to those of its own namespace alone"}},
		"a port's name": {func(svc *corev1.Service, _ []*corev1.Pod, s *discoveryv1.EndpointSlice) {
			svc.Spec.Ports[0].TargetPort, s.Endpoints = intstr.FromString("htpp"), nil
		}, []string{"none of the 2 pods that it selects is an endpoint", `a  no container has a TCP port named "htpp", the targetPort of 80 (it has http 8080/TCP)`}},
		"a port's number": {func(svc *corev1.Service, _ []*corev1.Pod, _ *discoveryv1.EndpointSlice) {
			svc.Spec.Ports[0].TargetPort = intstr.FromInt32(8081)
		}, []string{"its port 80 leads to port 8081 of the pods, which a does not declare (http 8080/TCP); is that right?"}},
		"ending": {func(_ *corev1.Service, pods []*corev1.Pod, _ *discoveryv1.EndpointSlice) {
			pods[1].DeletionTimestamp = new(metav1.NewTime(testTime))
		}, []string{"b  is being deleted; it serves on only while no other pod does"}},
		"no address": {func(_ *corev1.Service, pods []*corev1.Pod, _ *discoveryv1.EndpointSlice) {
			pods[1].Status = corev1.PodStatus{Phase: corev1.PodPending}
		}, []string{"b  has no address yet: "}},
		"no node": {func(_ *corev1.Service, pods []*corev1.Pod, _ *discoveryv1.EndpointSlice) {
			pods[1].Spec.NodeName, pods[1].Status = "", corev1.PodStatus{Phase: corev1.PodPending}
		}, []string{"b  has no node yet"}},
		"crashing": {func(_ *corev1.Service, pods []*corev1.Pod, _ *discoveryv1.EndpointSlice) {
			pods[1].Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
		}, []string{"b  is not ready: container web waits: CrashLoopBackOff"}},
		"a gate": {func(_ *corev1.Service, pods []*corev1.Pod, _ *discoveryv1.EndpointSlice) {
			pods[1].Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "x/y"}}
		}, []string{"its readiness gate x/y is not true"}},
		"no controller": {func(_ *corev1.Service, _ []*corev1.Pod, s *discoveryv1.EndpointSlice) { s.Endpoints = nil },
			[]string{"a  is ready, and the endpoints do not name it yet"}},
		"no selector": {func(svc *corev1.Service, _ []*corev1.Pod, _ *discoveryv1.EndpointSlice) { svc.Spec.Selector = nil },
			[]string{"has no selector; the EndpointSlices that somebody else keeps for it name 1 endpoints", "(not selected: an EndpointSlice names it)"}},
		"headless": {func(svc *corev1.Service, _ []*corev1.Pod, _ *discoveryv1.EndpointSlice) {
			svc.Spec.ClusterIP, svc.Spec.Type, svc.Spec.Ports[0].NodePort = "None", corev1.ServiceTypeClusterIP, 0
		}, []string{"it is headless: its name leads to the pods' own addresses"}},
		"external": {func(svc *corev1.Service, _ []*corev1.Pod, _ *discoveryv1.EndpointSlice) {
			svc.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.org"}
		}, []string{"is another name for example.org"}},
	} {
		svc, pods, slice := serviceFixture()
		x.change(svc, pods, slice)
		objects := []api.Object{svc, pods[0], pods[1], slice, kubeletNode("n")}
		f := newFake(t, objects...)
		f.says("n", report.Service{Known: true})
		r := f.ctl("", "why", "svc/web")
		for _, want := range x.want {
			if r.code != 0 || !strings.Contains(r.out, want) {
				t.Errorf("%s: without %q: %s\n%s", name, want, r.text, r.out)
			}
		}
	}
}
