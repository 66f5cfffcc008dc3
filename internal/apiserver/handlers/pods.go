package handlers

import (
	"net/http"

	"github.com/labstack/echo/v4"
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/apiserver/nodes"
)

// connecting returns the routes of a pod subresource that upgrades the connection. GET is for a WebSocket, POST for
// SPDY, and both need the right to create. An error of serve comes before the connection is upgraded, and is an
// ordinary answer.
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

// pod returns the pod of an authorised request for something that only its node can serve. Its name may be only a
// part of the name in the path. The errors are 404, 400 if the pod is on no node, and 503 if the node cannot be
// reached.
func (h *Handler) pod(r *request, name string) (*corev1.Pod, error) {
	e, err := h.reg.Parent(r.Request().Context(), r.ask, name)
	if err != nil {
		return nil, err
	}
	pod := e.Object().(*corev1.Pod)
	return pod, h.nodes.Reachable(pod)
}

// logs serves pods/log.
func (h *Handler) logs(r *request) error {
	pod, err := h.pod(r, r.name)
	if err != nil {
		return err
	}
	return h.nodes.Logs(r.Response(), r.Request(), pod, r.query)
}
