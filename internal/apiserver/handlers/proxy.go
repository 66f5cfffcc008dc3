package handlers

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/api"
	"minik8s/internal/apiserver/proxy"
	"minik8s/internal/registry"
)

// proxying returns the routes of a subresource that forwards any request. Each method needs the verb that it has for
// objects.
func proxying(serve func(*Handler, *request, proxy.Target) error) map[string]route {
	forward := func(h *Handler, r *request) error {
		target, err := proxy.ParseTarget(r.kind.Singular, r.name)
		if err != nil {
			return err
		}
		return serve(h, r, target)
	}
	routes := map[string]route{}
	for method, verb := range map[string]string{http.MethodGet: "get", http.MethodHead: "get", http.MethodPost: "create",
		http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete", http.MethodOptions: "options"} {
		routes[method] = route{verb: verb, serve: forward, long: true, foreign: true}
	}
	return routes
}

// podProxy serves pods/proxy.
func (h *Handler) podProxy(r *request, target proxy.Target) error {
	pod, err := h.pod(r, target.Name)
	if err != nil {
		return err
	}
	port, err := target.OfPod(pod)
	if err != nil {
		return err
	}
	return h.nodes.PodProxy(r.Response(), r.Request(), pod, target.Scheme, port, r.path)
}

// serviceProxy serves services/proxy: by one of the Service's ready endpoints, which is taken by chance.
func (h *Handler) serviceProxy(r *request, target proxy.Target) error {
	ctx := r.Request().Context()
	e, err := h.reg.Parent(ctx, r.ask, target.Name)
	if err != nil {
		return err
	}
	svc := e.Object().(*corev1.Service)
	list, err := h.reg.List(ctx, &registry.Request{User: registry.System, Verb: "list", Kind: api.EndpointSlices, Namespace: svc.Namespace},
		registry.ListOptions{Labels: labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: svc.Name})})
	if err != nil {
		return err
	}
	var of []*discoveryv1.EndpointSlice
	for _, e := range list.Entries {
		of = append(of, e.Object().(*discoveryv1.EndpointSlice))
	}
	endpoints, err := target.OfService(svc, of)
	if err != nil {
		return err
	}
	rand.Shuffle(len(endpoints), func(i, j int) { endpoints[i], endpoints[j] = endpoints[j], endpoints[i] })
	for _, e := range endpoints {
		if pod := h.podAt(ctx, svc.Namespace, e); pod != nil {
			return h.nodes.PodProxy(r.Response(), r.Request(), pod, target.Scheme, e.Port, r.path)
		}
	}
	return apierrors.NewServiceUnavailable("no endpoints available for service \"" + r.name + "\": no pod has the address of one of them")
}

// podAt returns the pod of an endpoint; nil if it does not have the endpoint's address. As in Kubernetes, the API server
// connects to no address just because somebody wrote it into an EndpointSlice.
func (h *Handler) podAt(ctx context.Context, namespace string, e proxy.Endpoint) *corev1.Pod {
	found, err := h.reg.Get(ctx, &registry.Request{User: registry.System, Verb: "get", Kind: api.Pods, Namespace: namespace, Name: e.Pod})
	if err != nil {
		return nil
	}
	pod := found.Object().(*corev1.Pod)
	if pod.Status.PodIP == e.Address || slices.Contains(pod.Status.PodIPs, corev1.PodIP{IP: e.Address}) {
		return pod
	}
	return nil
}

// nodeProxy serves nodes/proxy. A kubelet runs commands by an upgraded GET too, so an upgrade needs the right to create, as
// it does for pods/exec.
func (h *Handler) nodeProxy(r *request, target proxy.Target) error {
	ctx := r.Request().Context()
	if r.Request().Header.Get("Upgrade") != "" {
		more := *r.ask
		more.Verb = "create"
		if err := h.reg.Authorize(ctx, &more); err != nil {
			return err
		}
	}
	e, err := h.reg.Parent(ctx, r.ask, target.Name)
	if err != nil {
		return err
	}
	return h.nodes.NodeProxy(r.Response(), r.Request(), e.Object().(*corev1.Node), target, r.path)
}
