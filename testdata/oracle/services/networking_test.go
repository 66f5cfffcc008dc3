package services

import (
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/pkg/apis/networking"
	upstream "k8s.io/kubernetes/pkg/apis/networking/v1"
	upstreamvalidation "k8s.io/kubernetes/pkg/apis/networking/validation"
)

// rarely is pick where the first value is the one that is right: objects have several such fields, and some must be good.
func rarely[T any](rng *rand.Rand, right T, others ...T) T {
	if rng.IntN(14) > 0 {
		return right
	}
	return others[rng.IntN(len(others))]
}

func backend(rng *rand.Rand) networkingv1.IngressBackend {
	return networkingv1.IngressBackend{
		Service: rarely(rng, &networkingv1.IngressServiceBackend{Name: rarely(rng, "web", "", "1web", "Web", strings.Repeat("a", 64)),
			Port: networkingv1.ServiceBackendPort{Name: rarely(rng, "", "http", "Http", "a--b"), Number: rarely(rng, int32(80), 0, -1, 70000)}},
			nil, &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Name: pick(rng, "http", "Http", "a--b", "")}}),
		Resource: rarely(rng, nil, &corev1.TypedLocalObjectReference{APIGroup: pick(rng, nil, new("example.com"), new("a b")),
			Kind: pick(rng, "Bucket", "", "a/b"), Name: pick(rng, "x", "", "a%b")}),
	}
}

// ingress is an Ingress of which some fields are odd.
func ingress(rng *rand.Rand) *networkingv1.Ingress {
	in := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: rarely(rng, "web", "Web", "a.b")}}
	if class := rarely(rng, "", "nginx", "other"); class != "" {
		in.Annotations = map[string]string{"kubernetes.io/ingress.class": class}
	}
	s := &in.Spec
	s.IngressClassName = pick(rng, nil, new("nginx"), new("A b"), new(""))
	if rng.IntN(3) == 0 {
		b := backend(rng)
		s.DefaultBackend = &b
	}
	for range pick(rng, 1, 0, 2) {
		r := networkingv1.IngressRule{Host: rarely(rng, pick(rng, "a.example", "", "*.example"), "a.*.example", "*", "A.example", "10.0.0.1", "010.0.0.1", "fd00::1", "a b")}
		if rng.IntN(8) > 0 {
			r.HTTP = &networkingv1.HTTPIngressRuleValue{}
			for range rarely(rng, 1, 0, 2) {
				r.HTTP.Paths = append(r.HTTP.Paths, networkingv1.HTTPIngressPath{Backend: backend(rng),
					PathType: rarely(rng, new(pick(rng, networkingv1.PathTypePrefix, networkingv1.PathTypeExact, networkingv1.PathTypeImplementationSpecific)), nil, new(networkingv1.PathType("Other")), new(networkingv1.PathType(""))),
					Path:     pick(rng, "/", "/a", "", "a", "/a//b", "/a/./b", "/a/../b", "/a/..", "/a/.", "/a%2fb", "/a%2Fb", "/a.b", "/a b")})
			}
		}
		s.Rules = append(s.Rules, r)
	}
	if rng.IntN(4) == 0 {
		s.TLS = []networkingv1.IngressTLS{{Hosts: pick(rng, []string{"a.example"}, nil, []string{"*.example", "*"}, []string{"A.example"}, []string{""}),
			SecretName: pick(rng, "tls", "", "Tls", "a_b")}}
	}
	return in
}

func ingressClass(rng *rand.Rand) *networkingv1.IngressClass {
	c := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: rarely(rng, "nginx", "Nginx")}}
	c.Spec.Controller = pick(rng, "example.com/nginx", "", "nginx", "example.com/", "/nginx", "Example.com/x", "example.com/a b", "example.com/"+strings.Repeat("a", 250))
	if rng.IntN(2) == 0 {
		c.Spec.Parameters = &networkingv1.IngressClassParametersReference{APIGroup: pick(rng, nil, new("example.com"), new("a b")),
			Kind: pick(rng, "Settings", "", "a/b"), Name: pick(rng, "x", "", "a%b"), Scope: pick(rng, nil, new("Cluster"), new("Namespace"), new("Other"), new("")),
			Namespace: pick(rng, nil, new("default"), new("A b"))}
	}
	return c
}

func labels(rng *rand.Rand) *metav1.LabelSelector {
	return pick(rng, &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}, &metav1.LabelSelector{}, rarely(rng, nil,
		&metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}, &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b c"}},
		&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Other"}}},
		&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpIn}}}))
}

func policyPorts(rng *rand.Rand) []networkingv1.NetworkPolicyPort {
	var out []networkingv1.NetworkPolicyPort
	for range pick(rng, 1, 0, 2) {
		out = append(out, networkingv1.NetworkPolicyPort{Protocol: rarely(rng, nil, new(corev1.ProtocolUDP), new(corev1.Protocol("ICMP")), new(corev1.Protocol(""))),
			Port:    pick(rng, new(intstr.FromInt32(80)), nil, new(intstr.FromString("http")), new(intstr.FromString("Not a port")), new(intstr.FromInt32(0)), new(intstr.FromInt32(70000))),
			EndPort: rarely(rng, nil, new(int32(90)), new(int32(70)), new(int32(70000)), new(int32(80)))})
	}
	return out
}

func peers(rng *rand.Rand) []networkingv1.NetworkPolicyPeer {
	var out []networkingv1.NetworkPolicyPeer
	for range pick(rng, 1, 0, 2) {
		switch rng.IntN(8) {
		case 0:
			out = append(out, networkingv1.NetworkPolicyPeer{PodSelector: labels(rng), NamespaceSelector: labels(rng)})
		case 1:
			out = append(out, networkingv1.NetworkPolicyPeer{NamespaceSelector: labels(rng)})
		case 2, 3, 4:
			out = append(out, networkingv1.NetworkPolicyPeer{PodSelector: labels(rng)})
		default:
			out = append(out, networkingv1.NetworkPolicyPeer{PodSelector: rarely(rng, nil, labels(rng)), IPBlock: &networkingv1.IPBlock{
				CIDR:   rarely(rng, "10.0.0.0/8", "", "10.0.0.0", "10.0.0.1/8", "010.0.0.0/8", "fd00::/8", "0.0.0.0/0", "nonsense"),
				Except: pick(rng, nil, []string{"10.1.0.0/16"}, []string{"10.1.0.0/16", "11.0.0.0/8"}, []string{"10.0.0.0/8"}, []string{"fd00::/16"}, []string{"nonsense"}, []string{"10.1.0.1/16"})}})
		}
	}
	return out
}

func networkPolicy(rng *rand.Rand) *networkingv1.NetworkPolicy {
	p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: rarely(rng, "web", "Web", "a.b")}}
	s := &p.Spec
	if l := labels(rng); l != nil {
		s.PodSelector = *l
	}
	for range pick(rng, 1, 0, 2) {
		s.Ingress = append(s.Ingress, networkingv1.NetworkPolicyIngressRule{Ports: policyPorts(rng), From: peers(rng)})
	}
	if rng.IntN(3) == 0 {
		s.Egress = append(s.Egress, networkingv1.NetworkPolicyEgressRule{Ports: policyPorts(rng), To: peers(rng)})
	}
	s.PolicyTypes = rarely(rng, nil, []networkingv1.PolicyType{"Egress"}, []networkingv1.PolicyType{"Other", ""}, []networkingv1.PolicyType{"Ingress", "Egress", "Ingress"})
	return p
}

func TestNetworkingVerdicts(t *testing.T) {
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	verdicts(t, "ingresses.json", rand.New(rand.NewPCG(3, 4)), ingress, func(in *networkingv1.Ingress) []string {
		in = in.DeepCopy()
		var internal networking.Ingress
		must(upstream.Convert_v1_Ingress_To_networking_Ingress(in, &internal, nil))
		return refused(upstreamvalidation.ValidateIngressCreate(&internal))
	})
	verdicts(t, "ingressclasses.json", rand.New(rand.NewPCG(5, 6)), ingressClass, func(c *networkingv1.IngressClass) []string {
		c = c.DeepCopy()
		upstream.SetObjectDefaults_IngressClass(c)
		var internal networking.IngressClass
		must(upstream.Convert_v1_IngressClass_To_networking_IngressClass(c, &internal, nil))
		return refused(upstreamvalidation.ValidateIngressClass(&internal))
	})
	verdicts(t, "networkpolicies.json", rand.New(rand.NewPCG(7, 8)), networkPolicy, func(p *networkingv1.NetworkPolicy) []string {
		p = p.DeepCopy()
		upstream.SetObjectDefaults_NetworkPolicy(p)
		var internal networking.NetworkPolicy
		must(upstream.Convert_v1_NetworkPolicy_To_networking_NetworkPolicy(p, &internal, nil))
		return refused(upstreamvalidation.ValidateNetworkPolicy(&internal, upstreamvalidation.ValidationOptionsForNetworking(&internal, nil)))
	})
}
