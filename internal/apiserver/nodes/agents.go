package nodes

import (
	"context"
	"io"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/apiserver/streaming"
)

// Agents reaches the agent of a node, by the node's name, for everything that is not an object.
type Agents interface {
	Logs(ctx context.Context, node, namespace, pod, container string, opts *corev1.PodLogOptions) (io.ReadCloser, error)
	Images(node string) (Images, error)
	// Connectable returns the error with which Exec and Attach would fail at once, or nil. In all three, container
	// may be empty if the pod has only one.
	Connectable(node, namespace, pod, container string) error
	// Exec runs a command in a container and returns its exit code.
	Exec(ctx context.Context, node, namespace, pod, container string, command []string, s streaming.Streams) (int32, error)
	// Attach connects to a container's own streams until it exits.
	Attach(ctx context.Context, node, namespace, pod, container string, s streaming.Streams) error
	// PortForward connects to a port inside a pod, on its loopback.
	PortForward(ctx context.Context, node, namespace, pod string, port int32) (io.ReadWriteCloser, error)
	// Dial connects to a port of a pod by its address.
	Dial(ctx context.Context, node, namespace, pod string, port int32) (io.ReadWriteCloser, error)
}

// Images are the images on one node.
type Images interface {
	List(ctx context.Context) ([]Image, error)
	// Pull calls progress now and then.
	Pull(ctx context.Context, ref string, progress func(done, total int64)) error
	Import(ctx context.Context, archive io.Reader) ([]Image, error)
	Remove(ctx context.Context, ref string) error
}

// Image is an image on a node.
type Image struct {
	ID   string   `json:"id"`
	Tags []string `json:"tags"`
	Size int64    `json:"size"` // bytes
}

// Handler serves the agents' logs, streams and connections.
type Handler struct {
	// Agents reaches the nodes; nil: no node can be reached.
	Agents Agents
	// WriteTimeout is how long a client may take to read a piece of an answer.
	WriteTimeout time.Duration
	Log          *slog.Logger
}

// Reachable refuses a pod that is on no node (400), or on one that cannot be reached (503).
func (h *Handler) Reachable(pod *corev1.Pod) error {
	switch {
	case pod.Spec.NodeName == "":
		return apierrors.NewBadRequest("pod " + pod.Name + " does not have a host assigned")
	case h.Agents == nil:
		return unreachable(pod.Spec.NodeName)
	}
	return nil
}

func unreachable(node string) error {
	return apierrors.NewServiceUnavailable("node " + node + " cannot be reached from here")
}
