package why

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/ways"
)

// serviceFacts is what explains a Service.
type serviceFacts struct {
	pods     []*corev1.Pod // of its namespace
	alike    []*corev1.Pod // of other namespaces, with the labels that it selects
	slices   []*discoveryv1.EndpointSlice
	policies []*networkingv1.NetworkPolicy // of its namespace
	nodes    []ways.OfNode                 // what they say that they do with it
	mute     []string                      // nodes that cannot say it
	// unhealthy are the newest warnings about pods that are not ready, by the pod's name.
	unhealthy map[string]*corev1.Event
}

// maxAsked bounds the pods of whose events explanations are made.
const maxAsked = 5

func (l *look) service(ctx context.Context, svc *corev1.Service) *serviceFacts {
	f := &serviceFacts{unhealthy: map[string]*corev1.Event{}}
	here := client.ListOptions{Namespace: svc.Namespace}
	f.pods, _, _ = client.All[*corev1.Pod](ctx, l.api, api.Pods, here)
	f.policies, _, _ = client.All[*networkingv1.NetworkPolicy](ctx, l.api, api.NetworkPolicies, here)
	f.slices, _, _ = client.All[*discoveryv1.EndpointSlice](ctx, l.api, api.EndpointSlices, client.ListOptions{Namespace: svc.Namespace,
		Labels: labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: svc.Name})})
	selected := 0
	for _, p := range f.pods {
		if !selects(svc, p) {
			continue
		}
		selected++
		if len(f.unhealthy) < maxAsked && p.Status.PodIP != "" && !isPodReady(p) {
			s := situation{}
			s.events, _ = brief.EventsOf(ctx, l.api, p)
			f.unhealthy[p.Name] = s.lastWarning("Unhealthy")
		}
	}
	if selected == 0 && len(svc.Spec.Selector) > 0 {
		elsewhere, _, _ := client.All[*corev1.Pod](ctx, l.api, api.Pods, client.ListOptions{Labels: labels.SelectorFromSet(svc.Spec.Selector)})
		for _, p := range elsewhere {
			if p.Namespace != svc.Namespace {
				f.alike = append(f.alike, p)
			}
		}
	}
	if virtual(svc) {
		nodes, _, _ := client.All[*corev1.Node](ctx, l.api, api.Nodes, client.ListOptions{})
		f.nodes, f.mute = ways.OfNodes(ctx, l.api, nodes, svc.Namespace, svc.Name)
	}
	return f
}

// virtual reports whether nodes lead connections to the Service's own address.
func virtual(svc *corev1.Service) bool {
	return svc.Spec.Type != corev1.ServiceTypeExternalName && svc.Spec.ClusterIP != "" && svc.Spec.ClusterIP != corev1.ClusterIPNone
}

func selects(svc *corev1.Service, pod *corev1.Pod) bool {
	return len(svc.Spec.Selector) > 0 && labels.SelectorFromSet(svc.Spec.Selector).Matches(labels.Set(pod.Labels))
}

func isPodReady(pod *corev1.Pod) bool {
	c := brief.PodCondition(pod, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}
