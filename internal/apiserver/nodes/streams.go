package nodes

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"

	"github.com/labstack/echo/v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api/podspec"
	"minik8s/internal/apiserver/proxy"
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

// Proxy forwards a request to a port of a pod; path is the part of the request's path that the pod gets.
func (h *Handler) Proxy(w *echo.Response, req *http.Request, pod *corev1.Pod, target proxy.Target, path string) error {
	dial := h.Dial
	if dial == nil {
		dial = byAddress
	}
	p := proxy.Proxy{Target: target, Pod: pod, Path: path, WriteTimeout: h.WriteTimeout, Log: h.Log,
		Dial: func(ctx context.Context, port int32) (io.ReadWriteCloser, error) { return dial(ctx, pod, port) }}
	return p.Serve(w, req)
}

// byAddress connects to a port of a pod by the pod's address, as other clients in the cluster do.
func byAddress(ctx context.Context, pod *corev1.Pod, port int32) (io.ReadWriteCloser, error) {
	addr, err := netip.ParseAddr(pod.Status.PodIP)
	if err != nil {
		return nil, apierrors.NewBadRequest("pod " + pod.Name + " has no address yet")
	}
	if !addr.IsGlobalUnicast() || addr.Zone() != "" { // only a forged status has such an address
		return nil, apierrors.NewBadRequest("pod " + pod.Name + " has an address that is no pod's: " + addr.String())
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", netip.AddrPortFrom(addr, uint16(port)).String())
}
