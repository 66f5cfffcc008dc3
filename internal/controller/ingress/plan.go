package ingress

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/controller/entry"
	"minik8s/internal/gateway/frontends"
)

const http, https = 80, 443

// wanted are the addresses that an Ingress is to have. Those that it has stay if nothing better is known.
func wanted(in *networkingv1.Ingress, classes []*networkingv1.IngressClass, nodes []*corev1.Node) []networkingv1.IngressLoadBalancerIngress {
	have := in.Status.LoadBalancer.Ingress
	if !frontends.Serves(in, classes) {
		if slices.ContainsFunc(have, func(at networkingv1.IngressLoadBalancerIngress) bool { return !ours(at) }) {
			return have
		}
		return nil
	}
	ports := []networkingv1.IngressPortStatus{{Port: http, Protocol: corev1.ProtocolTCP}}
	if slices.ContainsFunc(in.Spec.TLS, func(t networkingv1.IngressTLS) bool { return t.SecretName != "" }) {
		ports = append(ports, networkingv1.IngressPortStatus{Port: https, Protocol: corev1.ProtocolTCP})
	}
	var out []networkingv1.IngressLoadBalancerIngress
	for _, a := range entry.All(nodes) {
		out = append(out, networkingv1.IngressLoadBalancerIngress{IP: a.String(), Ports: ports})
	}
	if len(out) == 0 {
		return have
	}
	return out
}

// ours reports whether an address is as this controller writes it: others name no ports.
func ours(at networkingv1.IngressLoadBalancerIngress) bool {
	return at.IP != "" && at.Hostname == "" && len(at.Ports) > 0 && at.Ports[0].Port == http
}

// newClass is the gateway's class. It is the default if no other is.
func newClass(others []*networkingv1.IngressClass) *networkingv1.IngressClass {
	c := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: frontends.ClassName}, Spec: networkingv1.IngressClassSpec{Controller: frontends.Controller}}
	if !slices.ContainsFunc(others, api.IsDefaultIngressClass) {
		c.Annotations = map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"}
	}
	return c
}
