package task

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/containerd/containerd/errdefs"
	"github.com/containerd/containerd/events"
	"github.com/containerd/containerd/namespaces"
	"github.com/containerd/containerd/plugin"
	"github.com/containerd/containerd/runtime"

	"minik8s/internal/kubelet/cgroup"
)

// Config is what a Runtime needs.
type Config struct {
	// State holds a directory per container, in one for its namespace. It does not survive a reboot.
	State string
	// RuncRoot is where runc keeps its state, per namespace.
	RuncRoot string
	// Runc and Keeper are the programs.
	Runc, Keeper string
	Cgroups      *cgroup.Manager
	// Events is where what happens is published.
	Events events.Publisher
	Log    *slog.Logger
}

// Runtime is containerd's runtime of tasks. Its methods are safe for concurrent use; every ctx names one of containerd's
// namespaces.
type Runtime struct {
	cfg     Config
	nursery nursery
	warned  sync.Once // that the nursery stays in the daemon's cgroup

	mu    sync.Mutex
	tasks map[key]*Task // nil: it is being made or removed
}

var _ runtime.PlatformRuntime = (*Runtime)(nil)

// key names a container.
type key struct{ namespace, id string }

// New makes a Runtime and finds the tasks of the last run. What it had not made completely is removed.
func New(cfg Config) (*Runtime, error) {
	r := &Runtime{cfg: cfg, tasks: map[key]*Task{}}
	r.nursery.program, r.nursery.join = cfg.Keeper, r.moveNursery
	if err := os.MkdirAll(cfg.State, 0o711); err != nil {
		return nil, err
	}
	return r, r.find()
}

// moveNursery moves the nursery to the keepers' cgroup, so that keepers outlive the daemon's, that of a service for example.
// Where cgroups cannot be made it stays there, and a warning says what that means.
func (r *Runtime) moveNursery(pid int) error {
	if err := r.cfg.Cgroups.AddKeeper(pid); err != nil {
		r.warned.Do(func() {
			r.cfg.Log.Warn("keepers stay in the daemon's cgroup: if that is ended, containers are too", "err", err)
		})
	}
	return nil
}

// Close ends the nursery. Keepers and containers go on.
func (r *Runtime) Close() error {
	r.nursery.mu.Lock()
	defer r.nursery.mu.Unlock()
	r.nursery.close()
	return nil
}

// ID implements runtime.PlatformRuntime. It is the name of containerd's own.
func (*Runtime) ID() string { return fmt.Sprintf("%s.%s", plugin.RuntimePluginV2, "task") }

// Get implements runtime.PlatformRuntime.
func (r *Runtime) Get(ctx context.Context, id string) (runtime.Task, error) {
	ns, err := namespaces.NamespaceRequired(ctx)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.tasks[key{ns, id}]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("task %s: %w", id, errdefs.ErrNotFound)
}

// Tasks implements runtime.PlatformRuntime.
func (r *Runtime) Tasks(ctx context.Context, all bool) ([]runtime.Task, error) {
	ns, err := namespaces.NamespaceRequired(ctx)
	if err != nil && !all {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []runtime.Task
	for k, t := range r.tasks {
		if t != nil && (all || k.namespace == ns) {
			list = append(list, t)
		}
	}
	return list, nil
}

// Delete implements runtime.PlatformRuntime: it removes a task that has ended.
func (r *Runtime) Delete(ctx context.Context, id string) (*runtime.Exit, error) {
	got, err := r.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	t := got.(*Task)
	end, ok := t.finished(ctx)
	if !ok {
		return nil, fmt.Errorf("task %s must be stopped before deletion: %w", id, errdefs.ErrFailedPrecondition)
	}
	if !r.reserve(t.key, t) {
		return nil, fmt.Errorf("task %s: %w", id, errdefs.ErrNotFound) // somebody else removes it
	}
	if err := r.destroy(t.key); err != nil {
		r.put(t.key, t)
		return nil, err
	}
	r.forget(t.key)
	t.publishDeleted(end)
	return &end, nil
}

// reserve keeps others from a key while its task is made or removed; false if it does not have this task, which is nil if
// there is to be none.
func (r *Runtime) reserve(k key, t *Task) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if have, busy := r.tasks[k]; have != t || busy && have == nil {
		return false
	}
	r.tasks[k] = nil
	return true
}

func (r *Runtime) put(k key, t *Task) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tasks[k] = t
}

func (r *Runtime) forget(k key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.tasks, k)
}

// EndAll ends and removes every task, of every namespace.
func (r *Runtime) EndAll(ctx context.Context) error {
	all, err := r.Tasks(ctx, true)
	if err != nil {
		return err
	}
	var errs []error
	for _, x := range all {
		t := x.(*Task)
		if !r.reserve(t.key, t) {
			continue
		}
		if err := r.destroy(t.key); err != nil {
			r.put(t.key, t)
			errs = append(errs, err)
			continue
		}
		r.forget(t.key)
	}
	return errors.Join(errs...)
}

func (r *Runtime) bundle(k key) string { return filepath.Join(r.cfg.State, k.namespace, k.id) }

func (r *Runtime) runc(k key) runc {
	return runc{program: r.cfg.Runc, root: filepath.Join(r.cfg.RuncRoot, k.namespace)}
}

// publish tells containerd's subscribers of an event. It may have nobody who listens.
func (r *Runtime) publish(namespace, topic string, event events.Event) {
	ctx := namespaces.WithNamespace(context.Background(), namespace)
	if err := r.cfg.Events.Publish(ctx, topic, event); err != nil {
		r.cfg.Log.Warn("an event of a container was not published", "topic", topic, "err", err)
	}
}
