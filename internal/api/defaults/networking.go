package defaults

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// IngressClass has the parameters of a class be an object of the cluster, unless it is set otherwise.
func IngressClass(c *networkingv1.IngressClass) {
	if p := c.Spec.Parameters; p != nil && p.Scope == nil {
		whole := *p
		whole.Scope = new(networkingv1.IngressClassParametersReferenceScopeCluster)
		c.Spec.Parameters = &whole
	}
}

// NetworkPolicy sets what a policy is about: what comes in, and if it has rules for that also what goes out. The protocol
// of ports is TCP.
func NetworkPolicy(p *networkingv1.NetworkPolicy) {
	s := &p.Spec
	if len(s.PolicyTypes) == 0 {
		s.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		if len(s.Egress) > 0 {
			s.PolicyTypes = append(s.PolicyTypes, networkingv1.PolicyTypeEgress)
		}
	}
	s.Ingress, s.Egress = slices.Clone(s.Ingress), slices.Clone(s.Egress) // they may be shared with what another try begins from
	for i := range s.Ingress {
		s.Ingress[i].Ports = policyPorts(s.Ingress[i].Ports)
	}
	for i := range s.Egress {
		s.Egress[i].Ports = policyPorts(s.Egress[i].Ports)
	}
}

func policyPorts(ports []networkingv1.NetworkPolicyPort) []networkingv1.NetworkPolicyPort {
	ports = slices.Clone(ports)
	for i := range ports {
		if ports[i].Protocol == nil {
			ports[i].Protocol = new(corev1.ProtocolTCP)
		}
	}
	return ports
}
