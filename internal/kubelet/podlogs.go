package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api"
	"minik8s/internal/api/podspec"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/logs"
	"minik8s/internal/kubelet/plan"
)

// snapshot is what a worker shows to readers of logs.
type snapshot struct {
	pod *corev1.Pod
	// containers are the runtime's, by container of the spec the newest attempt.
	containers map[string]cri.Container
	// exits are closed when the container of that id has exited.
	exits map[string]chan struct{}
}

// snapshots holds the snapshots of all pods.
type snapshots struct {
	mu   sync.Mutex
	pods map[string]*snapshot // by namespace/name; of two with one name the later
}

func (g *snapshots) reset() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pods = map[string]*snapshot{}
}

// publishSnapshot brings the snapshot up to date. It runs in the worker's goroutine, after a look.
func (w *worker) publishSnapshot() {
	g := &w.k.snapshots
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.snapshot == nil {
		w.snapshot = &snapshot{exits: map[string]chan struct{}{}}
	}
	s := w.snapshot
	s.containers = map[string]cri.Container{}
	there := map[string]bool{}
	for i := range w.view.Containers {
		c := &w.view.Containers[i]
		there[c.ID] = c.State != cri.Exited
		if n := plan.Newest(w.view, c.Name); n.ID == c.ID {
			s.containers[c.Name] = *c
		}
	}
	for id, ch := range s.exits {
		if !there[id] {
			close(ch)
			delete(s.exits, id)
		}
	}
	for id, running := range there {
		if running && s.exits[id] == nil {
			s.exits[id] = make(chan struct{})
		}
	}
	if w.pod != nil {
		s.pod = w.pod
	}
	if w.pod != nil && !w.objectGone { // its name may belong to a successor by now
		g.pods[w.pod.Namespace+"/"+w.pod.Name] = s
	}
}

// dropSnapshot ends a worker's snapshot, and with it the following of its logs.
func (w *worker) dropSnapshot() {
	g := &w.k.snapshots
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.snapshot == nil {
		return
	}
	for id, ch := range w.snapshot.exits {
		close(ch)
		delete(w.snapshot.exits, id)
	}
	if w.pod != nil && g.pods[w.pod.Namespace+"/"+w.pod.Name] == w.snapshot {
		delete(g.pods, w.pod.Namespace+"/"+w.pod.Name)
	}
}

// get is a pod as a reader of logs sees it; ok is false if this node does not have it.
func (g *snapshots) get(namespace, pod string) (s snapshot, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.pods[namespace+"/"+pod]
	if p == nil {
		return snapshot{}, false
	}
	s = snapshot{pod: p.pod, containers: p.containers, exits: map[string]chan struct{}{}}
	for id, ch := range p.exits {
		s.exits[id] = ch
	}
	return s, true
}

// Logs opens the log of a container of a pod on this node; container may be empty if the pod has but
// one. The reader must be closed; with opts.Follow it ends when the container has exited, or with
// ctx. Errors are the API's: NotFound, and BadRequest with what to do instead.
func (k *Kubelet) Logs(ctx context.Context, namespace, pod, container string, opts *corev1.PodLogOptions) (io.ReadCloser, error) {
	w, err := k.podOf(namespace, pod)
	if err != nil {
		return nil, err
	}
	if container, err = podspec.ChooseContainer(w.pod, container); err != nil {
		return nil, err
	}
	path, exited, err := k.logOf(w, container, opts.Previous)
	if err != nil {
		return nil, err
	}
	r, out := io.Pipe()
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		err := logs.Read(ctx, &k.hub, path, k.logOptions(opts), exited, out)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil // it has not written anything, or what it wrote is removed
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

func (k *Kubelet) podOf(namespace, name string) (snapshot, error) {
	s, ok := k.snapshots.get(namespace, name)
	if !ok || s.pod == nil {
		return s, apierrors.NewNotFound(api.Pods.GR(), name)
	}
	return s, nil
}

// logOf finds the file of a container's log, and the channel that closes at its exit (nil if it
// has exited, or will not say).
func (k *Kubelet) logOf(s snapshot, name string, previous bool) (string, <-chan struct{}, error) {
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
			prev = attempt // it waits for its next start: its newest attempt is its last state already
		}
		if prev < 0 {
			return "", nil, apierrors.NewBadRequest(fmt.Sprintf("previous terminated container %q in pod %q not found", name, s.pod.Name))
		}
		return k.logPath(s.pod, name, prev), closed(), nil
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
	return k.logPath(s.pod, name, attempt), exited, nil
}

// reasonText is how Kubernetes puts trouble with images here.
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

func (k *Kubelet) logOptions(opts *corev1.PodLogOptions) logs.Options {
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
		o.Since = k.now().Add(-time.Duration(*opts.SinceSeconds) * time.Second)
	}
	if opts.Stream != nil && *opts.Stream != "All" {
		o.Stream = strings.ToLower(*opts.Stream)
	}
	return o
}

// LogDir is the directory below which all containers log.
func (k *Kubelet) LogDir() string { return filepath.Join(k.cfg.DataDir, "pods-logs") }
