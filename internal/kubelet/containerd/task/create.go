package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	eventsapi "github.com/containerd/containerd/api/events"
	"github.com/containerd/containerd/api/types"
	"github.com/containerd/containerd/errdefs"
	"github.com/containerd/containerd/mount"
	"github.com/containerd/containerd/namespaces"
	"github.com/containerd/containerd/runtime"

	"minik8s/internal/kubelet/cgroup"
)

// Create implements runtime.PlatformRuntime: it makes a container whose process waits for its start, completely or not at
// all.
func (r *Runtime) Create(ctx context.Context, id string, opts runtime.CreateOpts) (runtime.Task, error) {
	ns, err := namespaces.NamespaceRequired(ctx)
	if err != nil {
		return nil, err
	}
	if opts.Checkpoint != "" {
		return nil, fmt.Errorf("restoring a checkpoint: %w", errdefs.ErrNotImplemented)
	}
	k := key{ns, id}
	if id == "" || filepath.Base(id) != id || strings.HasPrefix(id, ".") {
		return nil, fmt.Errorf("%q cannot be the name of a task: %w", id, errdefs.ErrInvalidArgument)
	}
	if !r.reserve(k, nil) {
		return nil, fmt.Errorf("task %s: %w", id, errdefs.ErrAlreadyExists)
	}
	t, err := r.create(ctx, k, opts)
	if err != nil {
		if gone := r.destroy(k); gone != nil {
			err = errors.Join(err, gone)
			r.put(k, r.remains(k, opts.IO)) // it can be removed later
		} else {
			r.forget(k)
		}
		return nil, fmt.Errorf("failed to create task: %w", err)
	}
	r.put(k, t)
	go t.watch(t.publishEnd)
	return t, nil
}

func (r *Runtime) create(ctx context.Context, k key, opts runtime.CreateOpts) (*Task, error) {
	t := r.task(k, opts.IO)
	t.cgroup = cgroupOf(opts.Spec.GetValue())
	// What is in the container's cgroup ends with it, so that has to be its own.
	if t.cgroup != "" && (t.cgroup == "/" || filepath.Clean(t.cgroup) != t.cgroup) {
		return nil, fmt.Errorf("%q cannot be the cgroup of a container: %w", t.cgroup, errdefs.ErrInvalidArgument)
	}
	rootfs := filepath.Join(t.dir, "rootfs")
	if err := os.MkdirAll(filepath.Dir(t.dir), 0o711); err != nil {
		return nil, err
	}
	// What is there of the same name was left by a removal that failed.
	if err := r.destroy(k); err != nil {
		return nil, err
	}
	if t.cgroup != "" && len(cgroup.Processes(r.cfg.Cgroups.Dirs(t.cgroup))) > 0 {
		return nil, fmt.Errorf("the cgroup %s has processes, and a container needs one of its own: %w", t.cgroup, errdefs.ErrFailedPrecondition)
	}
	if err := os.Mkdir(t.dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.Mkdir(rootfs, 0o711); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(t.dir, "config.json"), opts.Spec.GetValue(), 0o600); err != nil {
		return nil, err
	}
	if err := mount.All(opts.Rootfs, rootfs); err != nil {
		return nil, fmt.Errorf("root file system: %w", err)
	}
	if err := os.MkdirAll(r.runc(k).root, 0o711); err != nil {
		return nil, err
	}
	command := []string{"create", "--bundle", t.dir, "--pid-file", filepath.Join(t.dir, "pid")}
	if opts.IO.Terminal {
		command = append(command, "--console-socket", "console")
	}
	if err := t.make(ctx, &r.nursery, "create", r.runc(k).gate(k.id), r.runc(k).args(t.dir, append(command, k.id)...)); err != nil {
		return nil, err
	}
	event := &eventsapi.TaskCreate{ContainerID: k.id, Bundle: t.dir, Checkpoint: opts.Checkpoint, Pid: t.pid,
		IO: &eventsapi.TaskIO{Stdin: opts.IO.Stdin, Stdout: opts.IO.Stdout, Stderr: opts.IO.Stderr, Terminal: opts.IO.Terminal}}
	for _, m := range opts.Rootfs {
		event.Rootfs = append(event.Rootfs, &types.Mount{Type: m.Type, Source: m.Source, Target: m.Target, Options: m.Options})
	}
	r.publish(k.namespace, runtime.TaskCreateEventTopic, event)
	return t, nil
}

// remains is a Task without a process, of which there is something that could not be removed.
func (r *Runtime) remains(k key, io runtime.IO) *Task {
	t := r.task(k, io)
	t.end = runtime.Exit{Status: lostCode, Timestamp: time.Now()}
	close(t.ended)
	return t
}

// task is a Task without a process yet.
func (r *Runtime) task(k key, io runtime.IO) *Task {
	t := &Task{key: k, runtime: r, execs: map[string]*Exec{}}
	t.process = newProcess(r.bundle(k), io, t.owns)
	return t
}

// find finds the tasks of the last run. Their ends are published when somebody can listen: who asks is told, too.
func (r *Runtime) find() error {
	spaces, err := os.ReadDir(r.cfg.State)
	if err != nil {
		return err
	}
	for _, ns := range spaces {
		entries, err := os.ReadDir(filepath.Join(r.cfg.State, ns.Name()))
		if err != nil {
			return err
		}
		for _, e := range entries {
			k := key{ns.Name(), e.Name()}
			t := r.task(k, runtime.IO{})
			if !t.read() {
				if err := r.destroy(k); err != nil {
					r.cfg.Log.Warn("a container that was not made completely stays", "container", k.id, "err", err)
					r.tasks[k] = r.remains(k, t.io)
				}
				continue
			}
			t.cgroup = r.cgroup(k)
			t.started = !r.runc(k).waiting(k.id)
			t.paused = cgroup.Frozen(r.cgroups(k))
			t.findExecs()
			r.tasks[k] = t
			t.resume(t.publishEnd)
		}
	}
	return nil
}

// resume goes on watching a process that was found. One that has ended is so before it returns.
func (p *process) resume(done func(runtime.Exit)) {
	if end, ok, err := readEnd(p.dir); ok && err == nil {
		end.Pid = p.pid
		p.end = end
		close(p.ended)
		return
	}
	go p.watch(done)
}

// destroy kills and removes all that may exist of a container: its keeper, its processes, its cgroup, what runc knows of it,
// its mount and its directory. It does not need any of them to be whole, and can be done again after an error.
func (r *Runtime) destroy(k key) error {
	dir, rc := r.bundle(k), r.runc(k)
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return os.RemoveAll(rc.dir(k.id))
	}
	execs, err := filepath.Glob(filepath.Join(dir, execPrefix+"*"))
	if err != nil {
		return err
	}
	for _, d := range append(execs, dir) {
		if err := endKeeper(d); err != nil {
			return err
		}
	}
	if err := r.endProcesses(k); err != nil {
		return err
	}
	if err := os.RemoveAll(rc.dir(k.id)); err != nil {
		return err
	}
	if err := mount.UnmountAll(filepath.Join(dir, "rootfs"), unmountFlags); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("root file system: %w", err)
	}
	return os.RemoveAll(dir)
}

// cgroups are the directories of a container's cgroup: those that runc knows, or those that it was told to make, since it
// may have been killed before it wrote them down.
func (r *Runtime) cgroups(k key) []string {
	if dirs := r.runc(k).cgroups(k.id); len(dirs) > 0 {
		return dirs
	}
	if path := r.cgroup(k); path != "" {
		return r.cfg.Cgroups.Dirs(path)
	}
	return nil
}

// cgroup is the path of a container's cgroup, as its specification has it; empty if that leaves it to runc.
func (r *Runtime) cgroup(k key) string {
	data, err := os.ReadFile(filepath.Join(r.bundle(k), "config.json"))
	if err != nil {
		return ""
	}
	return cgroupOf(data)
}

func cgroupOf(config []byte) string {
	var spec struct {
		Linux struct {
			Path string `json:"cgroupsPath"`
		} `json:"linux"`
	}
	if json.Unmarshal(config, &spec) != nil || !strings.HasPrefix(spec.Linux.Path, "/") {
		return ""
	}
	return spec.Linux.Path
}
