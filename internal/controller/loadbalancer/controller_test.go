package loadbalancer

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/config"
	"minik8s/internal/api"
	"minik8s/internal/client"
	ct "minik8s/internal/controller/controllertest"
	"minik8s/internal/events"
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
	c.Start(controller(t, c, nil).Run)
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

// controller makes one, with a recorder that ends with the test.
func controller(t *testing.T, c *ct.Cluster, pool config.AddressPool) *Controller {
	as, log := c.As("loadbalancer-controller"), slog.New(slog.DiscardHandler)
	r := events.New(as, "loadbalancer-controller", "", log)
	go r.Run(c.Context())
	return New(as, c.Views(), r, pool, log)
}

// Without a pool all load balancers have the nodes' addresses: of two with one port the younger one says in a condition and an Event that
// it does not get it, until the older one is gone.
func TestPortTaken(t *testing.T) {
	c := ct.New(t)
	ct.Create(c, node("a", "10.0.0.3", corev1.ConditionTrue, "110"))
	c.Start(controller(t, c, nil).Run)
	for _, name := range []string{"first", "second"} { // of one second: the name decides
		ct.Create(c, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer,
			Ports: []corev1.ServicePort{{Port: 80}}}})
	}
	taken := func(all []*corev1.Service, name string) *metav1.Condition {
		for _, s := range all {
			if s.Name == name && len(addresses(s)) > 0 {
				return apimeta.FindStatusCondition(s.Status.Conditions, corev1.LoadBalancerPortsError)
			}
		}
		return nil
	}
	all := ct.Until(c, "second says that its port is taken", api.Services, func(all []*corev1.Service) bool { return taken(all, "second") != nil })
	if got := taken(all, "second"); got.Status != metav1.ConditionTrue || got.Reason != reasonTaken || !strings.Contains(got.Message, "80/TCP at the nodes' addresses is that of service default/first") || taken(all, "first") != nil {
		t.Errorf("%+v, %+v", got, taken(all, "first"))
	}
	ct.Until(c, "an Event says it", api.Events, func(all []*corev1.Event) bool {
		return slices.ContainsFunc(all, func(e *corev1.Event) bool {
			return e.InvolvedObject.Name == "second" && e.Reason == reasonTaken && e.Type == corev1.EventTypeWarning
		})
	})
	if _, err := c.Admin().Delete(t.Context(), client.Key{Kind: api.Services, Namespace: "default", Name: "first"}, nil); err != nil {
		t.Fatal(err)
	}
	ct.Until(c, "second has its port", api.Services, func(all []*corev1.Service) bool {
		return slices.ContainsFunc(all, func(s *corev1.Service) bool { return s.Name == "second" && len(s.Status.Conditions) == 0 })
	})
}

func addresses(svc *corev1.Service) []string {
	var out []string
	for _, in := range svc.Status.LoadBalancer.Ingress {
		out = append(out, in.IP)
	}
	return out
}
