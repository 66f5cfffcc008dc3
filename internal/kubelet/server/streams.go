package server

import (
	"context"
	"errors"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/kubelet/cri"
	"minik8s/internal/streaming"
)

var errNotMaster = errors.New("only the API server and administrators may use a kubelet")

// logs sends a container's log.
func (s *Server) logs(w http.ResponseWriter, req *http.Request, pods Pods) error {
	opts, err := streaming.ParseLogOptions(req.URL.Query())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	// Open the log first, so that a refusal is an ordinary answer.
	in, err := pods.Logs(ctx, req.PathValue("namespace"), req.PathValue("pod"), req.PathValue("container"), opts)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // it was only read
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusOK)
	out := streaming.NewWriter(w, s.cfg.WriteTimeout)
	if _, err := out.Write(nil); err != nil { // shows the client that the log is open, even if it is still empty
		return ignore(err)
	}
	broken := &streaming.Reader{Reader: in}
	_, err = io.Copy(out, broken)
	if err != nil && ctx.Err() == nil {
		s.cfg.Log.Debug("a log stream broke", "pod", req.PathValue("pod"), "error", err)
	}
	if err != nil || broken.Err != nil {
		panic(http.ErrAbortHandler) // a clean end would make what was sent look like the whole log
	}
	return nil
}

// exec runs a command in a container. An error comes before the connection is upgraded.
func (s *Server) exec(w http.ResponseWriter, req *http.Request, pods Pods) error {
	command := req.URL.Query()["command"]
	if len(command) == 0 || command[0] == "" {
		return apierrors.NewBadRequest("you must specify at least 1 command for the container")
	}
	namespace, pod, container := req.PathValue("namespace"), req.PathValue("pod"), req.PathValue("container")
	return process(w, req, pods, func(ctx context.Context, c streaming.Streams) (int32, error) {
		return pods.Exec(ctx, namespace, pod, container, cri.ExecConfig{Command: command, TTY: c.TTY,
			Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr, Resize: c.Resize})
	})
}

// attach connects to a container's own streams. An error comes before the connection is upgraded.
func (s *Server) attach(w http.ResponseWriter, req *http.Request, pods Pods) error {
	namespace, pod, container := req.PathValue("namespace"), req.PathValue("pod"), req.PathValue("container")
	return process(w, req, pods, func(ctx context.Context, c streaming.Streams) (int32, error) {
		return 0, pods.Attach(ctx, namespace, pod, container,
			cri.AttachConfig{Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr, Resize: c.Resize})
	})
}

// process connects the client to what run runs in the container of the path.
func process(w http.ResponseWriter, req *http.Request, pods Pods, run func(context.Context, streaming.Streams) (int32, error)) error {
	want, err := streaming.ParseWants(req.URL.Query())
	if err != nil {
		return err
	}
	if err := pods.Connectable(req.PathValue("namespace"), req.PathValue("pod"), req.PathValue("container")); err != nil {
		return err
	}
	return streaming.Upgrader{}.Process(w, req, want, run)
}

// portForward forwards connections to a pod's ports.
func (s *Server) portForward(w http.ResponseWriter, req *http.Request, pods Pods) error {
	return streaming.Upgrader{}.Ports(w, req, func(ctx context.Context, port int32) (io.ReadWriteCloser, error) {
		return pods.PortForward(ctx, req.PathValue("namespace"), req.PathValue("pod"), port)
	})
}
