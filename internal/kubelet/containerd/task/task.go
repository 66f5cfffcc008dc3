package task

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	eventsapi "github.com/containerd/containerd/api/events"
	"github.com/containerd/containerd/errdefs"
	"github.com/containerd/containerd/protobuf"
	"github.com/containerd/containerd/protobuf/types"
	"github.com/containerd/containerd/runtime"
	"golang.org/x/sys/unix"

	"minik8s/internal/kubelet/cgroup"
)

// unmountFlags detach a root file system that somebody still looks at.
const unmountFlags = unix.MNT_DETACH | unix.UMOUNT_NOFOLLOW

// Task is a container: its own process, and those that were added to it.
type Task struct {
	*process
	key     key
	runtime *Runtime
	cgroup  string // its path; empty if it was left to runc

	status  sync.Mutex
	started bool // or it is being started
	paused  bool
	execs   map[string]*Exec
}

var _ runtime.Task = (*Task)(nil)

// ID implements runtime.Process.
func (t *Task) ID() string { return t.key.id }

// Namespace implements runtime.Task.
func (t *Task) Namespace() string { return t.key.namespace }

// PID implements runtime.Task.
func (t *Task) PID(context.Context) (uint32, error) { return t.pid, nil }

// State implements runtime.Process.
func (t *Task) State(context.Context) (runtime.State, error) {
	t.status.Lock()
	defer t.status.Unlock()
	s := runtime.RunningStatus
	switch {
	case !t.started:
		s = runtime.CreatedStatus
	case t.paused:
		s = runtime.PausedStatus
	}
	return t.state(s), nil
}

// Start implements runtime.Process. The container is started when its keeper has been told, also if the daemon is killed right
// after, or if nobody waits any more until it runs.
func (t *Task) Start(ctx context.Context) error {
	t.status.Lock()
	again := t.started
	t.started = true
	t.status.Unlock()
	if again {
		return fmt.Errorf("the container was started before: %w", errdefs.ErrFailedPrecondition)
	}
	if err := t.letThrough(ctx, t.runtime.runc(t.key).gate(t.key.id)); err != nil {
		t.status.Lock()
		t.started = false
		t.status.Unlock()
		if errdefs.IsNotFound(err) {
			return fmt.Errorf("cannot start a stopped process: %v: %w", err, errdefs.ErrFailedPrecondition)
		}
		return err
	}
	t.runtime.publish(t.key.namespace, runtime.TaskStartEventTopic, &eventsapi.TaskStart{ContainerID: t.key.id, Pid: t.pid})
	return nil
}

// Kill implements runtime.Process. With all, every process of the container gets the signal. A frozen process ends only when
// it is thawed.
func (t *Task) Kill(_ context.Context, sig uint32, all bool) error {
	if unix.Signal(sig) == unix.SIGKILL {
		cgroup.Thaw(t.runtime.cgroups(t.key))
	}
	err := t.signal(sig) // also where it has left its cgroup
	if all {
		cgroup.Signal(t.runtime.cgroups(t.key), unix.Signal(sig))
		return nil
	}
	return err
}

// processes are all of the container's.
func (t *Task) processes() []int { return cgroup.Processes(t.runtime.cgroups(t.key)) }

// owns reports whether a process is in the container's cgroup.
func (t *Task) owns(pid uint32) bool {
	for _, p := range t.processes() {
		if p == int(pid) {
			return true
		}
	}
	return false
}

// endProcesses kills what is left in a container's cgroup, and removes it.
func (r *Runtime) endProcesses(k key) error {
	dirs := r.cgroups(k)
	err := cgroup.End(dirs)
	for end := time.Now().Add(killTimeout); errors.Is(err, unix.EBUSY) && time.Now().Before(end); {
		err = cgroup.End(dirs)
	}
	return err
}

// Pids implements runtime.Task.
func (t *Task) Pids(context.Context) ([]runtime.ProcessInfo, error) {
	var out []runtime.ProcessInfo
	for _, pid := range t.processes() {
		out = append(out, runtime.ProcessInfo{Pid: uint32(pid)})
	}
	return out, nil
}

// Pause implements runtime.Task.
func (t *Task) Pause(ctx context.Context) error {
	return t.freeze(ctx, true, "pause", runtime.TaskPausedEventTopic, &eventsapi.TaskPaused{ContainerID: t.key.id})
}

// Resume implements runtime.Task.
func (t *Task) Resume(ctx context.Context) error {
	return t.freeze(ctx, false, "resume", runtime.TaskResumedEventTopic, &eventsapi.TaskResumed{ContainerID: t.key.id})
}

func (t *Task) freeze(ctx context.Context, paused bool, verb, topic string, event any) error {
	t.status.Lock()
	defer t.status.Unlock()
	if err := t.runtime.runc(t.key).run(ctx, verb, t.key.id); err != nil {
		return err
	}
	t.paused = paused
	t.runtime.publish(t.key.namespace, topic, event)
	return nil
}

// Update implements runtime.Task: it sets the container's limits.
func (t *Task) Update(ctx context.Context, resources *types.Any, _ map[string]string) error {
	f, err := os.CreateTemp(t.dir, "resources-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // it goes with the directory at the latest
	_, err = f.Write(resources.GetValue())
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return t.runtime.runc(t.key).run(ctx, "update", "--resources", f.Name(), t.key.id)
}

// Checkpoint implements runtime.Task. Our runc is built without it.
func (*Task) Checkpoint(context.Context, string, *types.Any) error {
	return fmt.Errorf("checkpoints: %w", errdefs.ErrNotImplemented)
}

// publishEnd publishes the end of the container's process, and before it whether processes were killed for lack of memory.
func (t *Task) publishEnd(end runtime.Exit) {
	if t.cgroup != "" && cgroup.OOMKills(t.cgroup) > 0 {
		t.runtime.publish(t.key.namespace, runtime.TaskOOMEventTopic, &eventsapi.TaskOOM{ContainerID: t.key.id})
	}
	t.runtime.publish(t.key.namespace, runtime.TaskExitEventTopic, exitEvent(t.key.id, t.key.id, end))
}

func (t *Task) publishDeleted(end runtime.Exit) {
	t.runtime.publish(t.key.namespace, runtime.TaskDeleteEventTopic, &eventsapi.TaskDelete{ContainerID: t.key.id, ID: t.key.id, Pid: end.Pid,
		ExitStatus: end.Status, ExitedAt: protobuf.ToTimestamp(end.Timestamp)})
}

func exitEvent(container, id string, end runtime.Exit) *eventsapi.TaskExit {
	return &eventsapi.TaskExit{ContainerID: container, ID: id, Pid: end.Pid, ExitStatus: end.Status, ExitedAt: protobuf.ToTimestamp(end.Timestamp)}
}
