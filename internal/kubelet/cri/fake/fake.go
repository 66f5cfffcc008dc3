package fake

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"minik8s/internal/kubelet/cri"
)

// Hooks change what the runtime does. Each may be nil; they are called without any lock held, and
// may block until ctx ends. Set them before use.
type Hooks struct {
	// Before is called at the beginning of every call that changes something: "EnsureSandbox",
	// "RemoveSandbox", "CreateContainer", "StartContainer", "StopContainer", "RemoveContainer",
	// "PullImage". pod is the uid, name the container's or the image's. An error fails the call.
	Before func(ctx context.Context, call, pod, name string) error
	// After is called when the call has taken effect; its error is returned all the same.
	After func(ctx context.Context, call, pod, name string) error
	// Pull decides the result of a pull; nil: every image can be pulled.
	Pull func(ctx context.Context, ref string, progress func(cri.Progress)) (*cri.Image, error)
	// Login decides whether a pull with these credentials is authorised; nil: all are.
	Login func(auth *cri.Auth) error
	// StopTime is how long a container takes to end after its stop signal; nil: it ends at once.
	StopTime func(c cri.Container) time.Duration
	// Exec is a process that is added to a container, Attach the streams of its own, PortForward what
	// listens in a pod. The contexts of the first two end with the container, too.
	Exec        func(ctx context.Context, c cri.Container, cfg cri.ExecConfig) (int32, error)
	Attach      func(ctx context.Context, c cri.Container, cfg cri.AttachConfig) error
	PortForward func(ctx context.Context, podUID string, port int32) (io.ReadWriteCloser, error)
}

// Runtime is the fake. Its zero value is not ready: call New.
type Runtime struct {
	Hooks Hooks
	// Now is the clock; set it before use.
	Now func() time.Time
	// HostIP is the address of sandboxes in the host's network.
	HostIP netip.Addr
	// Any makes every image present.
	Any bool

	mu         sync.Mutex
	pods       map[string]*pod
	containers map[string]*container
	images     map[string]cri.Image
	next       int
	ip         netip.Addr
	free       []netip.Addr
	listeners  map[chan cri.Event]struct{}
	violations []string
}

type pod struct {
	sandbox    *cri.Sandbox
	cfg        cri.SandboxConfig
	containers []string
}

type container struct {
	cri.Container
	cfg  cri.ContainerConfig
	done chan struct{} // closed at exit
}

// New makes a runtime with no pods that has every image in images.
func New(images ...string) *Runtime {
	r := &Runtime{Now: time.Now, pods: map[string]*pod{}, containers: map[string]*container{},
		images: map[string]cri.Image{}, ip: netip.MustParseAddr("10.244.0.1"), HostIP: netip.MustParseAddr("192.0.2.1"),
		listeners: map[chan cri.Event]struct{}{}}
	for _, ref := range images {
		r.AddImage(ref)
	}
	return r
}

var _ cri.Runtime = (*Runtime)(nil)

// AddImage makes an image present.
func (r *Runtime) AddImage(ref string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.images[full(ref)] = image(ref)
}

// full is ref with the registry and the tag that it leaves out, by which images are kept.
func full(ref string) string {
	if name := ref[strings.LastIndexByte(ref, '/')+1:]; !strings.ContainsAny(name, ":@") {
		ref += ":latest"
	}
	if !strings.Contains(ref, "/") {
		ref = "library/" + ref
	}
	if host, _, _ := strings.Cut(ref, "/"); !strings.ContainsAny(host, ".:") && host != "localhost" {
		ref = "docker.io/" + ref
	}
	return ref
}

func image(ref string) cri.Image {
	ref = full(ref)
	return cri.Image{ID: fmt.Sprintf("sha256:%x", ref), Tags: []string{ref}, Size: 1 << 20}
}

// Violations is each breach of the contract by the caller so far.
func (r *Runtime) Violations() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.violations)
}

func (r *Runtime) violate(format string, args ...any) {
	r.violations = append(r.violations, fmt.Sprintf(format, args...))
}

// Restart ends every stream of events, as the end of the daemon would; all else stays.
func (r *Runtime) Restart() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for ch := range r.listeners {
		close(ch)
	}
	clear(r.listeners)
}

// Reboot ends everything that runs: containers exit with 137, sandboxes are no longer whole.
func (r *Runtime) Reboot() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.containers {
		if c.State == cri.Running {
			c.Lost = true
			r.exit(c, 137, false)
		}
	}
	for _, p := range r.pods {
		if p.sandbox != nil {
			p.sandbox.Whole = false
		}
	}
	r.broadcast(cri.Event{})
}

// Exit ends a running container, as if its process did: the newest of that name in the pod. It says
// whether there was one.
func (r *Runtime) Exit(uid, name string, code int32, oom bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.containers {
		if c.PodUID == uid && c.Name == name && c.State == cri.Running {
			r.exit(c, code, oom)
			return true
		}
	}
	return false
}

func (r *Runtime) exit(c *container, code int32, oom bool) {
	c.State, c.ExitCode, c.OOMKilled, c.FinishedAt, c.Pid = cri.Exited, code, oom, r.Now(), 0
	close(c.done)
	r.broadcast(cri.Event{PodUID: c.PodUID, ContainerID: c.ID})
}

// Config is what a container was made from.
func (r *Runtime) Config(id string) (cri.ContainerConfig, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.containers[id]
	if c == nil {
		return cri.ContainerConfig{}, false
	}
	return c.cfg, true
}

// Sandbox is what the pod's sandbox was made from.
func (r *Runtime) Sandbox(uid string) (cri.SandboxConfig, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pods[uid]
	if p == nil || p.sandbox == nil {
		return cri.SandboxConfig{}, false
	}
	return p.cfg, true
}

// Events tells of every change of a container.
func (r *Runtime) Events(ctx context.Context) <-chan cri.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	in, out := make(chan cri.Event, 64), make(chan cri.Event)
	r.listeners[in] = struct{}{}
	go func() {
		defer close(out)
		defer r.forget(in)
		for {
			select {
			case ev, ok := <-in:
				if !ok {
					return
				}
				select {
				case out <- ev:
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

func (r *Runtime) forget(ch chan cri.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.listeners, ch)
}

// broadcast sends ev to every listener. A full one gets, in place of its oldest event, one with an empty PodUID.
func (r *Runtime) broadcast(ev cri.Event) {
	for ch := range r.listeners {
		select {
		case ch <- ev:
		default:
			select {
			case <-ch:
			default:
			}
			select {
			case ch <- cri.Event{}:
			default:
			}
		}
	}
}

func (r *Runtime) before(ctx context.Context, call, uid, name string) error {
	if r.Hooks.Before == nil {
		return ctx.Err()
	}
	return r.Hooks.Before(ctx, call, uid, name)
}

func (r *Runtime) after(ctx context.Context, call, uid, name string) error {
	if r.Hooks.After == nil {
		return nil
	}
	return r.Hooks.After(ctx, call, uid, name)
}

// Pods lists all pods.
func (r *Runtime) Pods(context.Context) ([]cri.Pod, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []cri.Pod
	for uid := range r.pods {
		out = append(out, r.view(uid))
	}
	slices.SortFunc(out, func(a, b cri.Pod) int { return strings.Compare(a.UID, b.UID) })
	return out, nil
}

// Pod is one pod.
func (r *Runtime) Pod(_ context.Context, uid string) (cri.Pod, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.view(uid), nil
}

func (r *Runtime) view(uid string) cri.Pod {
	v := cri.Pod{UID: uid}
	p := r.pods[uid]
	if p == nil {
		return v
	}
	if p.sandbox != nil {
		s := *p.sandbox
		v.Sandbox = &s
	}
	for _, id := range p.containers {
		v.Containers = append(v.Containers, r.containers[id].Container)
	}
	return v
}

// Files are none: nothing is written here.
func (r *Runtime) Files(context.Context) ([]cri.Files, error) { return nil, nil }

// Stats are made up: every running container uses nothing.
func (r *Runtime) Stats(context.Context, func(string) bool) ([]cri.Stats, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []cri.Stats
	for _, c := range r.containers {
		if c.State == cri.Running {
			out = append(out, cri.Stats{PodUID: c.PodUID, Container: c.Name, ContainerID: c.ID, Time: r.Now()})
		}
	}
	return out, nil
}

// ImageStatus says whether ref is present.
func (r *Runtime) ImageStatus(_ context.Context, ref string) (*cri.Image, error) {
	if ref == "" || strings.ContainsAny(ref, " ") {
		return nil, fmt.Errorf("%w: %q", cri.ErrInvalidImageName, ref)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if i, ok := r.images[full(ref)]; ok {
		return &i, nil
	}
	if r.Any {
		i := image(ref)
		return &i, nil
	}
	return nil, nil
}

// PullImage makes ref present, by Hooks.Pull if that is set.
func (r *Runtime) PullImage(ctx context.Context, ref string, auth *cri.Auth, progress func(cri.Progress)) (*cri.Image, error) {
	if err := r.before(ctx, "PullImage", "", ref); err != nil {
		return nil, err
	}
	if r.Hooks.Login != nil {
		if err := r.Hooks.Login(auth); err != nil {
			return nil, err
		}
	}
	i := image(ref)
	if r.Hooks.Pull != nil {
		got, err := r.Hooks.Pull(ctx, ref, progress)
		if err != nil {
			return nil, err
		}
		if got != nil {
			i = *got
		}
	}
	r.mu.Lock()
	r.images[full(ref)] = i
	r.mu.Unlock()
	return &i, r.after(ctx, "PullImage", "", ref)
}

// ImportImages reads a list of references, one per line.
func (r *Runtime) ImportImages(_ context.Context, archive io.Reader) ([]cri.Image, error) {
	data, err := io.ReadAll(archive)
	if err != nil {
		return nil, err
	}
	var out []cri.Image
	for _, ref := range strings.Fields(string(data)) {
		r.AddImage(ref)
		out = append(out, image(ref))
	}
	return out, nil
}

// ListImages lists what is present.
func (r *Runtime) ListImages(context.Context) ([]cri.Image, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []cri.Image
	for _, i := range r.images {
		out = append(out, i)
	}
	slices.SortFunc(out, func(a, b cri.Image) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// RemoveImage makes ref absent.
func (r *Runtime) RemoveImage(_ context.Context, ref string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.images, full(ref))
	return nil
}
