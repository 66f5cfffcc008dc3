package nodes

import (
	"net/http"

	"github.com/labstack/echo/v4"
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/podspec"
)

// Exec runs a command in a container. An error comes before the connection is upgraded.
func (h *Handler) Exec(w *echo.Response, req *http.Request, pod *corev1.Pod) error {
	return h.inContainer(w, req, pod, "/exec/")
}

// Attach connects to a container's own streams. An error comes before the connection is upgraded.
func (h *Handler) Attach(w *echo.Response, req *http.Request, pod *corev1.Pod) error {
	return h.inContainer(w, req, pod, "/attach/")
}

func (h *Handler) inContainer(w *echo.Response, req *http.Request, pod *corev1.Pod, to string) error {
	query := req.URL.Query()
	container, err := podspec.ChooseContainer(pod, query.Get("container"))
	if err != nil {
		return err
	}
	return h.relay(w, req, pod.Spec.NodeName, to+pod.Namespace+"/"+pod.Name+"/"+container, query)
}

// PortForward forwards connections to a pod's ports.
func (h *Handler) PortForward(w *echo.Response, req *http.Request, pod *corev1.Pod) error {
	return h.relay(w, req, pod.Spec.NodeName, "/portForward/"+pod.Namespace+"/"+pod.Name, req.URL.Query())
}
