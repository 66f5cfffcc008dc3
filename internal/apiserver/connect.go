package apiserver

import (
	"context"
	"io"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/apiserver/streaming"
)

// connecting are the routes of a subresource of a pod that makes something else of the connection: GET is a
// WebSocket's way to ask, POST is SPDY's, and both are allowed to whoever may create. serve is given the
// pod's node; an error comes before the connection is upgraded, and is an answer like any other.
func connecting(serve func(s *Server, r *request, node string) error) map[string]route {
	to := route{verb: "create", long: true, serve: func(s *Server, r *request) error {
		pod, err := s.podOnNode(r)
		if err != nil {
			return err
		}
		return serve(s, r, pod.Spec.NodeName)
	}}
	return map[string]route{http.MethodGet: to, http.MethodPost: to}
}

// podOnNode is the pod of an authorised request for what only its node can give.
func (s *Server) podOnNode(r *request) (*corev1.Pod, error) {
	return s.podNamed(r, r.name)
}

// podNamed is podOnNode where the name of the pod is only a part of what the path names.
func (s *Server) podNamed(r *request, name string) (*corev1.Pod, error) {
	e, err := s.reg.Within(r.Request().Context(), r.ask, name)
	if err != nil {
		return nil, err
	}
	pod := e.Object().(*corev1.Pod)
	switch {
	case pod.Spec.NodeName == "":
		return nil, apierrors.NewBadRequest("pod " + name + " does not have a host assigned")
	case s.cfg.Nodes == nil:
		return nil, unreachable(pod.Spec.NodeName)
	}
	return pod, nil
}

// wants reads which streams a client asks for.
func (r *request) wants() (streaming.Wants, error) {
	q := r.query
	w := streaming.Wants{Stdin: isTrue(q.Get("stdin")), Stdout: isTrue(q.Get("stdout")), Stderr: isTrue(q.Get("stderr")), TTY: isTrue(q.Get("tty"))}
	if !w.Stdin && !w.Stdout && !w.Stderr {
		return w, apierrors.NewBadRequest("you must specify at least one of stdin, stdout, stderr")
	}
	return w, nil
}

// exec runs a command in a container.
func (s *Server) exec(r *request, node string) error {
	want, err := r.wants()
	if err != nil {
		return err
	}
	container, command := r.query.Get("container"), r.query["command"]
	if len(command) == 0 || command[0] == "" {
		return apierrors.NewBadRequest("you must specify at least 1 command for the container")
	}
	if err := s.cfg.Nodes.Connectable(node, r.namespace, r.name, container); err != nil {
		return err
	}
	return streaming.Process(r.Response(), r.Request(), want, func(ctx context.Context, c streaming.Streams) (int32, error) {
		return s.cfg.Nodes.Exec(ctx, node, r.namespace, r.name, container, command, c)
	})
}

// attach connects to a container's own streams.
func (s *Server) attach(r *request, node string) error {
	want, err := r.wants()
	if err != nil {
		return err
	}
	container := r.query.Get("container")
	if err := s.cfg.Nodes.Connectable(node, r.namespace, r.name, container); err != nil {
		return err
	}
	return streaming.Process(r.Response(), r.Request(), want, func(ctx context.Context, c streaming.Streams) (int32, error) {
		return 0, s.cfg.Nodes.Attach(ctx, node, r.namespace, r.name, container, c)
	})
}

// portForward forwards connections to a pod's ports.
func (s *Server) portForward(r *request, node string) error {
	return streaming.Ports(r.Response(), r.Request(), func(ctx context.Context, port int32) (io.ReadWriteCloser, error) {
		return s.cfg.Nodes.PortForward(ctx, node, r.namespace, r.name, port)
	})
}
