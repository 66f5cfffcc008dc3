package nodes

import (
	"context"
	"io"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/apiserver/proxy"
	"minik8s/internal/apiserver/streaming"
)

// wants reads which streams a client requests.
func wants(q url.Values) (streaming.Wants, error) {
	w := streaming.Wants{Stdin: isTrue(q.Get("stdin")), Stdout: isTrue(q.Get("stdout")), Stderr: isTrue(q.Get("stderr")), TTY: isTrue(q.Get("tty"))}
	if !w.Stdin && !w.Stdout && !w.Stderr {
		return w, apierrors.NewBadRequest("you must specify at least one of stdin, stdout, stderr")
	}
	return w, nil
}

// Exec runs a command in a container. An error comes before the connection is upgraded.
func (h *Handler) Exec(w *echo.Response, req *http.Request, pod *corev1.Pod) error {
	query := req.URL.Query()
	want, err := wants(query)
	if err != nil {
		return err
	}
	container, command := query.Get("container"), query["command"]
	if len(command) == 0 || command[0] == "" {
		return apierrors.NewBadRequest("you must specify at least 1 command for the container")
	}
	if err := h.Agents.Connectable(pod.Spec.NodeName, pod.Namespace, pod.Name, container); err != nil {
		return err
	}
	return streaming.Process(w, req, want, func(ctx context.Context, c streaming.Streams) (int32, error) {
		return h.Agents.Exec(ctx, pod.Spec.NodeName, pod.Namespace, pod.Name, container, command, c)
	})
}

// Attach connects to a container's own streams. An error comes before the connection is upgraded.
func (h *Handler) Attach(w *echo.Response, req *http.Request, pod *corev1.Pod) error {
	query := req.URL.Query()
	want, err := wants(query)
	if err != nil {
		return err
	}
	container := query.Get("container")
	if err := h.Agents.Connectable(pod.Spec.NodeName, pod.Namespace, pod.Name, container); err != nil {
		return err
	}
	return streaming.Process(w, req, want, func(ctx context.Context, c streaming.Streams) (int32, error) {
		return 0, h.Agents.Attach(ctx, pod.Spec.NodeName, pod.Namespace, pod.Name, container, c)
	})
}

// PortForward forwards connections to a pod's ports.
func (h *Handler) PortForward(w *echo.Response, req *http.Request, pod *corev1.Pod) error {
	return streaming.Ports(w, req, func(ctx context.Context, port int32) (io.ReadWriteCloser, error) {
		return h.Agents.PortForward(ctx, pod.Spec.NodeName, pod.Namespace, pod.Name, port)
	})
}

// Proxy forwards a request to a port of a pod; path is the part of the request's path that the pod gets.
func (h *Handler) Proxy(w *echo.Response, req *http.Request, pod *corev1.Pod, target proxy.Target, path string) error {
	p := proxy.Proxy{Target: target, Pod: pod, Path: path, WriteTimeout: h.WriteTimeout, Log: h.Log,
		Dial: func(ctx context.Context, port int32) (io.ReadWriteCloser, error) {
			return h.Agents.Dial(ctx, pod.Spec.NodeName, pod.Namespace, pod.Name, port)
		}}
	return p.Serve(w, req)
}

func isTrue(s string) bool { return s == "true" || s == "1" }
