package connect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/logs"
	"minik8s/internal/kubelet/plan"
)

// Logs opens the log of a container of a pod on this node; container may be empty if the pod has but one. The reader
// must be closed; with opts.Follow it ends when the container has exited, or with ctx. Errors are API errors:
// NotFound, and BadRequest with what to do instead.
func (m *Manager) Logs(ctx context.Context, namespace, pod, container string, opts *corev1.PodLogOptions) (io.ReadCloser, error) {
	s, err := m.get(namespace, pod)
	if err != nil {
		return nil, err
	}
	if container, err = podspec.ChooseContainer(s.pod, container); err != nil {
		return nil, err
	}
	path, exited, err := m.logOf(s, container, opts.Previous)
	if err != nil {
		return nil, err
	}
	r, out := io.Pipe()
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		err := logs.Read(ctx, &m.hub, path, m.logOptions(opts), exited, out)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil // it has not written anything, or its log is removed
		}
		out.CloseWithError(err)
	}()
	return &logReader{PipeReader: r, cancel: cancel}, nil
}

// logReader ends the reading when it is closed.
type logReader struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (r *logReader) Close() error {
	r.cancel()
	return r.PipeReader.Close()
}

// logOf finds the file of a container's log, and the channel that closes at its exit (nil if it has exited, or its
// exit is not tracked).
func (m *Manager) logOf(s Snapshot, name string, previous bool) (string, <-chan struct{}, error) {
	st := podspec.ContainerStatus(&s.pod.Status, name)
	c, there := s.containers[name]
	attempt := 0
	switch {
	case there:
		attempt = c.Attempt
	case st != nil:
		attempt = int(st.RestartCount)
	}
	if previous {
		prev := attempt - 1
		if st != nil && st.State.Waiting != nil && st.ContainerID != "" {
			prev = attempt // it waits for its restart: its newest attempt is already the last state
		}
		if prev < 0 {
			return "", nil, apierrors.NewBadRequest(fmt.Sprintf("previous terminated container %q in pod %q not found", name, s.pod.Name))
		}
		return m.cfg.LogPath(s.pod, name, prev), closed(), nil
	}
	if !there && (st == nil || st.ContainerID == "") || there && c.State == cri.Created {
		reason := "ContainerCreating"
		if st != nil && st.State.Waiting != nil && st.State.Waiting.Reason != "" {
			reason = st.State.Waiting.Reason
		}
		return "", nil, apierrors.NewBadRequest(fmt.Sprintf("container %q in pod %q is waiting to start: %s", name, s.pod.Name, reasonText(reason)))
	}
	exited := closed()
	if ch := s.exits[c.ID]; there && ch != nil {
		exited = ch
	}
	return m.cfg.LogPath(s.pod, name, attempt), exited, nil
}

// reasonText is how Kubernetes words reasons about images in these errors.
func reasonText(reason string) string {
	switch reason {
	case plan.ReasonErrImagePull:
		return "image can't be pulled"
	case "ImagePullBackOff":
		return "trying and failing to pull image"
	}
	return reason
}

func closed() <-chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}

func (m *Manager) logOptions(opts *corev1.PodLogOptions) logs.Options {
	o := logs.Options{Follow: opts.Follow, Timestamps: opts.Timestamps, Tail: -1, Limit: -1}
	if opts.TailLines != nil {
		o.Tail = *opts.TailLines
	}
	if opts.LimitBytes != nil {
		o.Limit = *opts.LimitBytes
	}
	switch {
	case opts.SinceTime != nil:
		o.Since = opts.SinceTime.Time
	case opts.SinceSeconds != nil:
		o.Since = m.cfg.Now().Add(-time.Duration(*opts.SinceSeconds) * time.Second)
	}
	if opts.Stream != nil && *opts.Stream != "All" {
		o.Stream = strings.ToLower(*opts.Stream)
	}
	return o
}
