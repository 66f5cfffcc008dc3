package proxy

import (
	"context"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/api"
	"minik8s/internal/registry"
)

// PodOf returns the pod and the port of one of a Service's ready endpoints, which is taken by chance. The error is 503 if
// there is none.
func (t Target) PodOf(ctx context.Context, reg *registry.Registry, svc *corev1.Service) (*corev1.Pod, int32, error) {
	list, err := reg.List(ctx, &registry.Request{User: registry.System, Verb: "list", Kind: api.EndpointSlices, Namespace: svc.Namespace},
		registry.ListOptions{Labels: labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: svc.Name})})
	if err != nil {
		return nil, 0, err
	}
	var of []*discoveryv1.EndpointSlice
	for _, e := range list.Entries {
		of = append(of, e.Object().(*discoveryv1.EndpointSlice))
	}
	endpoints, err := t.OfService(svc, of)
	if err != nil {
		return nil, 0, err
	}
	rand.Shuffle(len(endpoints), func(i, j int) { endpoints[i], endpoints[j] = endpoints[j], endpoints[i] })
	for _, e := range endpoints {
		if pod := podAt(ctx, reg, svc.Namespace, e); pod != nil {
			return pod, e.Port, nil
		}
	}
	return nil, 0, t.unavailable("no pod has the address of one of them")
}

// podAt returns the pod of an endpoint; nil if it does not have the endpoint's address. As in Kubernetes, the API server
// connects to no address just because somebody wrote it into an EndpointSlice.
func podAt(ctx context.Context, reg *registry.Registry, namespace string, e Endpoint) *corev1.Pod {
	found, err := reg.Get(ctx, &registry.Request{User: registry.System, Verb: "get", Kind: api.Pods, Namespace: namespace, Name: e.Pod})
	if err != nil {
		return nil
	}
	pod := found.Object().(*corev1.Pod)
	if pod.Status.PodIP == e.Address || slices.Contains(pod.Status.PodIPs, corev1.PodIP{IP: e.Address}) {
		return pod
	}
	return nil
}
