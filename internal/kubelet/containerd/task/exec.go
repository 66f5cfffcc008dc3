package task

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	eventsapi "github.com/containerd/containerd/api/events"
	"github.com/containerd/containerd/errdefs"
	"github.com/containerd/containerd/runtime"
	"golang.org/x/sys/unix"
)

// execPrefix is the prefix of the names of added processes' directories, in their container's.
const execPrefix = "exec-"

// Exec is a process that is added to a container.
type Exec struct {
	*process
	id      string
	task    *Task
	spec    []byte
	started bool // or its start was tried; guarded by the task's status
}

var _ runtime.ExecProcess = (*Exec)(nil)

// Exec implements runtime.Task: it takes note of a process; Start makes it.
func (t *Task) Exec(_ context.Context, id string, opts runtime.ExecOpts) (runtime.ExecProcess, error) {
	if id == "" || filepath.Base(id) != id || strings.HasPrefix(id, ".") {
		return nil, fmt.Errorf("%q cannot be the name of a process: %w", id, errdefs.ErrInvalidArgument)
	}
	t.status.Lock()
	defer t.status.Unlock()
	if t.execs[id] != nil {
		return nil, fmt.Errorf("process %s: %w", id, errdefs.ErrAlreadyExists)
	}
	e := t.exec(id, opts.IO)
	e.spec = opts.Spec.GetValue()
	t.execs[id] = e
	t.runtime.publish(t.key.namespace, runtime.TaskExecAddedEventTopic, &eventsapi.TaskExecAdded{ContainerID: t.key.id, ExecID: id})
	return e, nil
}

func (t *Task) exec(id string, io runtime.IO) *Exec {
	return &Exec{process: newProcess(filepath.Join(t.dir, execPrefix+id), io, t.owns), id: id, task: t}
}

// findExecs finds the processes that the last run has added.
func (t *Task) findExecs() {
	dirs, err := filepath.Glob(filepath.Join(t.dir, execPrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		e := t.exec(strings.TrimPrefix(filepath.Base(dir), execPrefix), runtime.IO{})
		if !e.read() {
			if err := e.destroy(); err != nil {
				t.runtime.cfg.Log.Warn("a process that was not made completely stays", "container", t.key.id, "err", err)
			}
			continue
		}
		e.started = true
		t.execs[e.id] = e
		e.resume(e.publishEnd)
	}
}

// Process implements runtime.Task.
func (t *Task) Process(_ context.Context, id string) (runtime.ExecProcess, error) {
	t.status.Lock()
	defer t.status.Unlock()
	if e := t.execs[id]; e != nil {
		return e, nil
	}
	return nil, fmt.Errorf("process %s: %w", id, errdefs.ErrNotFound)
}

// ID implements runtime.Process.
func (e *Exec) ID() string { return e.id }

// Start implements runtime.Process.
func (e *Exec) Start(ctx context.Context) error {
	if _, over := e.task.exited(); over {
		return fmt.Errorf("cannot exec in a stopped container: %w", errdefs.ErrFailedPrecondition)
	}
	e.task.status.Lock()
	again := e.started
	e.started = true
	e.task.status.Unlock()
	if again {
		return fmt.Errorf("process %s was started before: %w", e.id, errdefs.ErrFailedPrecondition)
	}
	if err := os.Mkdir(e.dir, 0o700); err != nil {
		return err
	}
	specFile := filepath.Join(e.dir, "process.json")
	if err := os.WriteFile(specFile, e.spec, 0o600); err != nil {
		return err
	}
	e.spec = nil
	command := []string{"exec", "--process", specFile, "--detach", "--pid-file", filepath.Join(e.dir, "pid")}
	if e.io.Terminal {
		command = append(command, "--console-socket", "console")
	}
	k := e.task.key
	rc := e.task.runtime.runc(k)
	// Once begun it is made, for only then is its number known: a caller who has given up meanwhile leaves no process.
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), makeTimeout)
	defer cancel()
	if err := e.make(bounded, &e.task.runtime.nursery, "exec", "", rc.args(e.dir, append(command, k.id)...)); err != nil {
		return err
	}
	e.task.runtime.publish(k.namespace, runtime.TaskExecStartedEventTopic, &eventsapi.TaskExecStarted{ContainerID: k.id, ExecID: e.id, Pid: e.pid})
	go e.watch(e.publishEnd)
	if ctx.Err() == nil {
		return nil
	}
	if err := e.signal(uint32(unix.SIGKILL)); err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	select {
	case <-e.ended:
	case <-time.After(killTimeout):
	}
	return ctx.Err()
}

// makeTimeout is how long runc may take to add a process.
const makeTimeout = 30 * time.Second

func (e *Exec) publishEnd(end runtime.Exit) {
	e.task.runtime.publish(e.task.key.namespace, runtime.TaskExitEventTopic, exitEvent(e.task.key.id, e.id, end))
}

// State implements runtime.Process.
func (e *Exec) State(context.Context) (runtime.State, error) {
	if e.state(0).Pid == 0 {
		return e.state(runtime.CreatedStatus), nil
	}
	return e.state(runtime.RunningStatus), nil
}

// Kill implements runtime.Process.
func (e *Exec) Kill(_ context.Context, sig uint32, _ bool) error { return e.signal(sig) }

// Delete implements runtime.ExecProcess: it removes a process that has ended, or was never started.
func (e *Exec) Delete(ctx context.Context) (*runtime.Exit, error) {
	end, over := e.finished(ctx)
	if !over && e.state(0).Pid != 0 {
		return nil, fmt.Errorf("process %s must be stopped before deletion: %w", e.id, errdefs.ErrFailedPrecondition)
	}
	if err := e.destroy(); err != nil {
		return nil, err
	}
	e.task.status.Lock()
	delete(e.task.execs, e.id)
	e.task.status.Unlock()
	return &end, nil
}

// destroy removes what may exist of an added process: its keeper, which may wait until its output is read, and its directory.
func (e *Exec) destroy() error {
	return errors.Join(endKeeper(e.dir), os.RemoveAll(e.dir))
}
