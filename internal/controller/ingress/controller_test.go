package ingress

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	ct "minik8s/internal/controller/controllertest"
	"minik8s/internal/gateway/frontends"
)

func node(name, address string, ready corev1.ConditionStatus, pods string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse(pods)},
		Addresses:   []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}},
		Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}}
}

func class(name, controller string, isDefault bool) *networkingv1.IngressClass {
	c := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.IngressClassSpec{Controller: controller}}
	if isDefault {
		c.Annotations = map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"}
	}
	return c
}

// shown are addresses with their ports: "10.0.0.1 80 443".
func shown(list []networkingv1.IngressLoadBalancerIngress) (out []string) {
	for _, at := range list {
		text := at.IP + at.Hostname
		for _, p := range at.Ports {
			text += fmt.Sprintf(" %d", p.Port)
		}
		out = append(out, text)
	}
	return out
}

func TestWanted(t *testing.T) {
	up := []*corev1.Node{node("b", "10.0.0.12", "True", "110"), node("a", "10.0.0.3", "True", "110"), node("lost", "10.0.0.5", "Unknown", "110"), node("master", "10.0.0.6", "True", "0")}
	classes := []*networkingv1.IngressClass{class("minik8s", frontends.Controller, true), class("nginx", "k8s.io/ingress-nginx", false)}
	of := func(ip string, ports ...int32) networkingv1.IngressLoadBalancerIngress {
		at := networkingv1.IngressLoadBalancerIngress{IP: ip}
		for _, p := range ports {
			at.Ports = append(at.Ports, networkingv1.IngressPortStatus{Port: p, Protocol: corev1.ProtocolTCP})
		}
		return at
	}
	for name, c := range map[string]struct {
		class string
		tls   bool
		have  []networkingv1.IngressLoadBalancerIngress
		nodes []*corev1.Node
		want  []string
	}{
		"no class":                        {nodes: up, want: []string{"10.0.0.3 80", "10.0.0.12 80"}},
		"with a certificate":              {class: "minik8s", tls: true, nodes: up, want: []string{"10.0.0.3 80 443", "10.0.0.12 80 443"}},
		"nodes have changed":              {nodes: up[:1], have: []networkingv1.IngressLoadBalancerIngress{of("10.0.0.3", 80)}, want: []string{"10.0.0.12 80"}},
		"no node is ready":                {nodes: up[2:], have: []networkingv1.IngressLoadBalancerIngress{of("10.0.0.3", 80)}, want: []string{"10.0.0.3 80"}},
		"another's":                       {class: "nginx", nodes: up},
		"another's, with its address":     {class: "nginx", nodes: up, have: []networkingv1.IngressLoadBalancerIngress{of("10.0.0.3")}, want: []string{"10.0.0.3"}},
		"another's now, with our address": {class: "nginx", nodes: up, have: []networkingv1.IngressLoadBalancerIngress{of("10.0.0.3", 80)}},
	} {
		in := &networkingv1.Ingress{Status: networkingv1.IngressStatus{LoadBalancer: networkingv1.IngressLoadBalancerStatus{Ingress: c.have}}}
		if c.class != "" {
			in.Spec.IngressClassName = &c.class
		}
		if c.tls {
			in.Spec.TLS = []networkingv1.IngressTLS{{SecretName: "s"}}
		}
		if got := shown(wanted(in, classes, c.nodes)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// The class is made, and an Ingress of it follows the nodes; one of another class does not.
func TestFollowsNodes(t *testing.T) {
	for _, others := range []bool{false, true} {
		c := ct.New(t)
		ct.Create(c, class("nginx", "k8s.io/ingress-nginx", others))
		ct.Create(c, node("a", "10.0.0.3", "True", "110"))
		c.Start(New(c.As("ingress-controller"), c.Views(), slog.New(slog.DiscardHandler)).Run)
		ct.Until(c, "the class", api.IngressClasses, func(all []*networkingv1.IngressClass) bool {
			i := slices.IndexFunc(all, func(c *networkingv1.IngressClass) bool { return c.Name == "minik8s" })
			return i >= 0 && all[i].Spec.Controller == frontends.Controller && api.IsDefaultIngressClass(all[i]) == !others
		})
		for name, class := range map[string]string{"web": "minik8s", "other": "nginx"} {
			ct.Create(c, &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.IngressSpec{IngressClassName: &class,
				DefaultBackend: &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "x", Port: networkingv1.ServiceBackendPort{Number: 80}}}}})
		}
		until := func(want ...string) {
			t.Helper()
			ct.Until(c, fmt.Sprint("addresses ", want), api.Ingresses, func(all []*networkingv1.Ingress) bool {
				return slices.ContainsFunc(all, func(in *networkingv1.Ingress) bool {
					if in.Name == "other" && len(in.Status.LoadBalancer.Ingress) > 0 {
						t.Error("the Ingress of another class has addresses")
					}
					return in.Name == "web" && slices.Equal(shown(in.Status.LoadBalancer.Ingress), want)
				})
			})
		}
		until("10.0.0.3 80")
		ct.Create(c, node("b", "10.0.0.12", "True", "110"))
		until("10.0.0.3 80", "10.0.0.12 80")
	}
}
