package loadbalancer

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
)

func on(n *corev1.Node, networks string) *corev1.Node {
	n.Annotations = map[string]string{api.NetworksAnnotation: networks}
	return n
}

// Who answers for an address stays while it can; else it is a node on the address' network and, where traffic stays on its node, one
// with an endpoint. Everybody who sees the same Nodes chooses the same, in whatever order, and many addresses are many nodes'.
func TestAnnouncer(t *testing.T) {
	at := netip.MustParseAddr("10.0.0.200")
	nodes := []*corev1.Node{
		on(node("a", "10.0.0.1", corev1.ConditionTrue, "110"), "10.0.0.0/24"), on(node("b", "10.0.0.2", corev1.ConditionTrue, "110"), "172.17.0.0/16,10.0.0.0/24"),
		on(node("far", "10.1.0.3", corev1.ConditionTrue, "110"), "10.1.0.0/24"), on(node("lost", "10.0.0.4", corev1.ConditionUnknown, "110"), "10.0.0.0/24"),
		on(node("master", "10.0.0.5", corev1.ConditionTrue, "0"), "10.0.0.0/24"),
	}
	for name, x := range map[string]struct {
		now    string
		nodes  []*corev1.Node
		serves map[string]bool
		want   string // empty: none
	}{
		"it stays":                      {now: "b", nodes: nodes, want: "b"},
		"it stays, the other one":       {now: "a", nodes: nodes, want: "a"},
		"it is lost":                    {now: "lost", nodes: nodes[1:], want: "b"},
		"it is on another network":      {now: "far", nodes: nodes[1:], want: "b"},
		"nobody is on the network":      {now: "", nodes: nodes[2:], want: "far"},
		"no node":                       {now: "a", nodes: nodes[3:], want: ""},
		"with an endpoint":              {now: "a", nodes: nodes, serves: map[string]bool{"b": true, "far": true}, want: "b"},
		"its endpoint has gone":         {now: "b", nodes: nodes, serves: map[string]bool{"a": true}, want: "a"},
		"no node there has an endpoint": {now: "b", nodes: nodes, serves: map[string]bool{"far": true}, want: "b"},
		"without endpoints":             {now: "b", nodes: nodes, serves: map[string]bool{}, want: "b"},
	} {
		if got := announcer(at, x.now, x.nodes, x.serves); got != x.want {
			t.Errorf("%s: %q, want %q", name, got, x.want)
		}
	}
	count := map[string]int{}
	for i := range 200 {
		addr := netip.AddrFrom4([4]byte{10, 0, 0, byte(10 + i)})
		one, other := announcer(addr, "", nodes, nil), announcer(addr, "", []*corev1.Node{nodes[2], nodes[1], nodes[0]}, nil)
		if one != other {
			t.Fatalf("%s: %s or %s", addr, one, other)
		}
		count[one]++
	}
	if len(count) != 2 || count["a"] < 50 || count["b"] < 50 {
		t.Errorf("200 addresses are %v", count)
	}
}

// Of load balancers with one port the older one has it, whatever their other ports are; of one moment, the first by name.
func TestRival(t *testing.T) {
	began := time.Now()
	service := func(name string, age time.Duration, ports ...int32) *corev1.Service {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(began.Add(-age))},
			Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}}
		for _, p := range ports {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Port: p, Protocol: corev1.ProtocolTCP})
		}
		return s
	}
	udp := service("udp", time.Hour, 80)
	udp.Spec.Ports[0].Protocol = corev1.ProtocolUDP
	other := service("other", time.Hour, 80)
	other.Spec.LoadBalancerClass = new("example.com/other")
	old, young := service("old", time.Minute, 443, 80), service("young", time.Second, 80)
	all := []*corev1.Service{udp, other, young, old, service("twin", time.Second, 80), service("alone", 0, 81)}
	for name, want := range map[string]string{"old": "", "young": "old 80", "twin": "old 80", "alone": ""} {
		for _, s := range all {
			if s.Name != name {
				continue
			}
			got := ""
			if by, port := rival(s, all); by != nil {
				got = fmt.Sprint(by.Name, " ", port.Port)
			}
			if got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	}
	if by, _ := rival(all[4], []*corev1.Service{young, all[4]}); by != nil {
		t.Errorf("twin yields to %s", by.Name)
	}
}
