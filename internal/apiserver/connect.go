package apiserver

import (
	"context"
	"io"
	"net/http"

	"github.com/labstack/echo/v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/apiserver/streaming"
	"minik8s/internal/registry"
)

// connectors are the subresources of a pod that make something else of the connection. Each is given a
// pod that is on the node; an error is of before the connection was upgraded.
var connectors = map[string]func(s *Server, r *request, node string) error{
	"exec": (*Server).exec, "attach": (*Server).attach, "portforward": (*Server).portForward,
}

// connect serves every subresource of that kind: GET is a WebSocket's way to ask, POST is SPDY's, and
// both are allowed to whoever may create.
func (s *Server) connect(r *request) error {
	if m := r.Request().Method; m != http.MethodGet && m != http.MethodPost {
		return echo.ErrMethodNotAllowed
	}
	user := userOf(r)
	err := s.reg.Authorize(user, registry.Access{Verb: "create", Kind: r.kind, Sub: r.sub, Namespace: r.namespace, Name: r.name})
	if err != nil {
		return err
	}
	e, err := s.reg.Get(r.Request().Context(), user, r.kind, r.namespace, r.name)
	if err != nil {
		return err
	}
	node := e.Object().(*corev1.Pod).Spec.NodeName
	switch {
	case node == "":
		return apierrors.NewBadRequest("pod " + r.name + " does not have a host assigned")
	case s.cfg.Nodes == nil:
		return unreachable(node)
	}
	return connectors[r.sub](s, r, node)
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
