package defaults

//lint:file-ignore SA1019 Endpoints are served for those who do not know EndpointSlices

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"minik8s/internal/api"
)

// Service sets the type, each port's protocol and target, session affinity, traffic policies and IP families. A cluster
// has IPv4, so a Service that does not ask for a family gets that one. What is given by allocation is not set here.
func Service(svc *corev1.Service) {
	s := &svc.Spec
	if s.Type == "" {
		s.Type = corev1.ServiceTypeClusterIP
	}
	affinity(s)
	if len(s.Ports) > 0 {
		s.Ports = slices.Clone(s.Ports) // they may be shared with what another try begins from
	}
	for i := range s.Ports {
		p := &s.Ports[i]
		if p.Protocol == "" {
			p.Protocol = corev1.ProtocolTCP
		}
		if p.TargetPort == intstr.FromInt32(0) || p.TargetPort == intstr.FromString("") {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
	if api.ReachableFromOutside(svc) && s.ExternalTrafficPolicy == "" {
		s.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
	}
	inside := api.HasNodePorts(svc) || s.Type == corev1.ServiceTypeClusterIP
	if inside && s.InternalTrafficPolicy == nil {
		s.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyCluster)
	}
	if s.Type == corev1.ServiceTypeLoadBalancer && s.AllocateLoadBalancerNodePorts == nil {
		s.AllocateLoadBalancerNodePorts = new(true)
	}
	ServiceStatus(svc)
	if s.ClusterIP != "" && len(s.ClusterIPs) == 0 {
		s.ClusterIPs = []string{s.ClusterIP}
	}
	if s.Type != corev1.ServiceTypeExternalName {
		families(s)
	}
}

func affinity(s *corev1.ServiceSpec) {
	switch s.SessionAffinity {
	case "":
		s.SessionAffinity = corev1.ServiceAffinityNone
		fallthrough
	case corev1.ServiceAffinityNone:
		s.SessionAffinityConfig = nil // as Kubernetes: what has no effect is not kept
	case corev1.ServiceAffinityClientIP:
		if c := s.SessionAffinityConfig; c == nil || c.ClientIP == nil || c.ClientIP.TimeoutSeconds == nil {
			s.SessionAffinityConfig = &corev1.SessionAffinityConfig{
				ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(corev1.DefaultClientIPServiceAffinitySeconds)}}
		}
	}
}

// families sets policy and families as a Kubernetes cluster with IPv4 alone does. A headless Service without a selector
// may have any addresses, so it stands for both families.
func families(s *corev1.ServiceSpec) {
	anything := s.ClusterIP == corev1.ClusterIPNone && len(s.Selector) == 0
	if s.IPFamilyPolicy == nil {
		policy := corev1.IPFamilyPolicySingleStack
		if anything {
			policy = corev1.IPFamilyPolicyRequireDualStack
		}
		s.IPFamilyPolicy = &policy
	}
	for i, given := range s.ClusterIPs {
		addr, err := netip.ParseAddr(given)
		if err != nil || i < len(s.IPFamilies) {
			continue
		}
		family := corev1.IPv4Protocol
		if addr.Is6() {
			family = corev1.IPv6Protocol
		}
		s.IPFamilies = append(slices.Clone(s.IPFamilies), family)
	}
	if len(s.IPFamilies) == 0 {
		s.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	}
	if anything && len(s.IPFamilies) == 1 && *s.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack {
		other := corev1.IPv6Protocol
		if s.IPFamilies[0] == other {
			other = corev1.IPv4Protocol
		}
		s.IPFamilies = append(slices.Clone(s.IPFamilies), other)
	}
}

// ServiceStatus sets how a load balancer's addresses are used.
func ServiceStatus(svc *corev1.Service) {
	if svc.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return
	}
	in := slices.Clone(svc.Status.LoadBalancer.Ingress)
	for i := range in {
		if in[i].IP != "" && in[i].IPMode == nil {
			in[i].IPMode = new(corev1.LoadBalancerIPModeVIP)
		}
	}
	svc.Status.LoadBalancer.Ingress = in
}

// Endpoints sets the protocol of ports.
func Endpoints(e *corev1.Endpoints) {
	for i := range e.Subsets {
		for j := range e.Subsets[i].Ports {
			if p := &e.Subsets[i].Ports[j]; p.Protocol == "" {
				p.Protocol = corev1.ProtocolTCP
			}
		}
	}
}

// EndpointSlice sets name and protocol of ports.
func EndpointSlice(s *discoveryv1.EndpointSlice) {
	for i := range s.Ports {
		p := &s.Ports[i]
		if p.Name == nil {
			p.Name = new("")
		}
		if p.Protocol == nil {
			p.Protocol = new(corev1.ProtocolTCP)
		}
	}
}
