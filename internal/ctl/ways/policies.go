package ways

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// ProxyName is the label of Services to which somebody else leads than the nodes' proxies, and its value says who.
const ProxyName = "service.kubernetes.io/service-proxy-name"

// Policies returns the names of the policies of the pod's namespace that select it for this direction. What they let
// through is not judged here.
func Policies(all []*networkingv1.NetworkPolicy, pod *corev1.Pod, direction networkingv1.PolicyType) (names []string) {
	if pod.Spec.HostNetwork { // its connections are the node's
		return nil
	}
	for _, p := range all {
		selector, err := metav1.LabelSelectorAsSelector(&p.Spec.PodSelector)
		if err != nil || p.Namespace != pod.Namespace || !selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		if slices.Contains(types(p), direction) {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	return names
}

// types are a policy's directions; the server fills them in where they are not given.
func types(p *networkingv1.NetworkPolicy) []networkingv1.PolicyType {
	if len(p.Spec.PolicyTypes) > 0 {
		return p.Spec.PolicyTypes
	}
	out := []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
	if len(p.Spec.Egress) > 0 {
		out = append(out, networkingv1.PolicyTypeEgress)
	}
	return out
}
