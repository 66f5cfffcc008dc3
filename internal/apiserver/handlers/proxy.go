package handlers

import (
	"net/http"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/apiserver/proxy"
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
	pod, port, err := target.PodOf(ctx, h.reg, e.Object().(*corev1.Service))
	if err != nil {
		return err
	}
	return h.nodes.PodProxy(r.Response(), r.Request(), pod, target.Scheme, port, r.path)
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
