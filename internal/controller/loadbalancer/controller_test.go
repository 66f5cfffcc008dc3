package loadbalancer

import (
	"log/slog"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	ct "minik8s/internal/controller/controllertest"
)

func node(name, address string, ready corev1.ConditionStatus, pods string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse(pods)},
		Addresses:   []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}, {Type: corev1.NodeInternalIP, Address: address}},
		Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}}
}

// The addresses are those of nodes that can lead traffic on, and a Service of another class is left alone.
func TestFollowsNodes(t *testing.T) {
	c := ct.New(t)
	excluded := node("d", "10.0.0.4", corev1.ConditionTrue, "110")
	excluded.Labels = map[string]string{corev1.LabelNodeExcludeBalancers: ""}
	for _, n := range []*corev1.Node{node("b", "10.0.0.12", corev1.ConditionTrue, "110"), node("a", "10.0.0.3", corev1.ConditionTrue, "110"),
		node("lost", "10.0.0.5", corev1.ConditionUnknown, "110"), node("master", "10.0.0.6", corev1.ConditionTrue, "0"), excluded} {
		ct.Create(c, n)
	}
	c.Start(New(c.As("loadbalancer-controller"), c.Views(), slog.New(slog.DiscardHandler)).Run)
	service := func(name string, class *string) {
		ct.Create(c, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer,
			LoadBalancerClass: class, Ports: []corev1.ServicePort{{Port: 80}}}})
	}
	service("other", new("example.com/other"))
	service("web", nil)
	until := func(want ...string) {
		t.Helper()
		for _, svc := range ct.Until(c, "the nodes' addresses", api.Services, func(all []*corev1.Service) bool {
			return slices.ContainsFunc(all, func(s *corev1.Service) bool { return s.Name == "web" && slices.Equal(addresses(s), want) })
		}) {
			if svc.Name == "other" && len(addresses(svc)) > 0 {
				t.Errorf("a Service of another class has %v", addresses(svc))
			}
		}
	}
	until("10.0.0.3", "10.0.0.12")
	ct.Change(c, api.Nodes, "d", func(n *corev1.Node) { n.Labels = nil })
	until("10.0.0.3", "10.0.0.4", "10.0.0.12")
}

func addresses(svc *corev1.Service) []string {
	var out []string
	for _, in := range svc.Status.LoadBalancer.Ingress {
		out = append(out, in.IP)
	}
	return out
}
