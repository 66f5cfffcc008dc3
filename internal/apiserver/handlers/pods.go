package handlers

import (
	"net/http"

	"github.com/labstack/echo/v4"
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/apiserver/nodes"
	"minik8s/internal/apiserver/proxy"
)

// connecting are the routes of a subresource of a pod that makes something else of the connection: GET is a
// WebSocket's way to ask, POST is SPDY's, and both are allowed to whoever may create. An error of serve comes before the
// connection is upgraded, and is an answer like any other.
func connecting(serve func(*nodes.Handler, *echo.Response, *http.Request, *corev1.Pod) error) map[string]route {
	to := route{verb: "create", long: true, foreign: true, serve: func(h *Handler, r *request) error {
		pod, err := h.pod(r, r.name)
		if err != nil {
			return err
		}
		return serve(h.nodes, r.Response(), r.Request(), pod)
	}}
	return map[string]route{http.MethodGet: to, http.MethodPost: to}
}

// proxying are the routes of a subresource that passes any request on, each method allowed as what it is for objects.
func proxying(serve func(*Handler, *request) error) map[string]route {
	routes := map[string]route{}
	for method, verb := range map[string]string{http.MethodGet: "get", http.MethodHead: "get", http.MethodPost: "create",
		http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete", http.MethodOptions: "options"} {
		routes[method] = route{verb: verb, serve: serve, long: true, foreign: true}
	}
	return routes
}

// pod is the pod of an authorised request for what only its node can give. Its name may be only a part of what the path
// names.
func (h *Handler) pod(r *request, name string) (*corev1.Pod, error) {
	e, err := h.reg.Parent(r.Request().Context(), r.ask, name)
	if err != nil {
		return nil, err
	}
	pod := e.Object().(*corev1.Pod)
	return pod, h.nodes.Reachable(pod)
}

// logs is pods/log.
func (h *Handler) logs(r *request) error {
	opts, err := nodes.LogOptions(r.query)
	if err != nil {
		return err
	}
	pod, err := h.pod(r, r.name)
	if err != nil {
		return err
	}
	return h.nodes.Logs(r.Response(), r.Request(), pod, opts)
}

// proxy is pods/proxy.
func (h *Handler) proxy(r *request) error {
	target, err := proxy.ParseTarget(r.name)
	if err != nil {
		return err
	}
	pod, err := h.pod(r, target.Pod)
	if err != nil {
		return err
	}
	return h.nodes.Proxy(r.Response(), r.Request(), pod, target, r.path)
}
