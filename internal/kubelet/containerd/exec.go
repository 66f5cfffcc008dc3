package containerd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/errdefs"
	"github.com/containerd/fifo"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/types/known/anypb"

	"minik8s/internal/kubelet/containerd/stdio"
	"minik8s/internal/kubelet/cri"
)

const (
	processType = "types.containerd.io/opencontainers/runtime-spec/1/Process"
	// execPrefix is the prefix of the names of exec processes' directories, in their container's.
	execPrefix = "exec-"
	// sizeWait is how long a start waits for the size of the terminal, which clients send first.
	sizeWait = 50 * time.Millisecond
)

// execProcess is a process that Exec has started in a container.
type execProcess struct {
	r       *Runtime
	c       *container
	id, dir string
	pid     uint32
	out     []*stdio.Pipe
}

// Exec implements cri.Runtime.
func (r *Runtime) Exec(ctx context.Context, id string, cfg cri.ExecConfig) (int32, error) {
	ctx = r.ns(ctx)
	c := r.container(id)
	if c == nil {
		return 0, fmt.Errorf("containerd: no container %s", id)
	}
	if s, _ := c.get(); s.State != cri.Running {
		return 0, cri.ErrNotRunning
	}
	x := &execProcess{r: r, c: c, id: newID()[:16]}
	x.dir = filepath.Join(c.dir, execPrefix+x.id)
	// For cleaning up, also after the end of ctx.
	undo := context.WithoutCancel(ctx)
	if err := x.start(ctx, cfg); err != nil {
		x.closeOutput()
		x.remove(undo)
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		return 0, err
	}
	talk, hangUp := context.WithCancel(ctx)
	defer hangUp()
	if cfg.Stdin != nil {
		go x.feed(talk, cfg.Stdin)
	}
	if cfg.Resize != nil {
		go r.resize(talk, c.meta.ID, x.id, cfg.Resize)
	}
	code, err := x.wait(ctx)
	all := false
	if err != nil {
		x.kill(undo)
	} else {
		all = x.drained(ctx)
	}
	hangUp()
	if all {
		x.remove(undo)
		x.closeOutput()
		return code, nil
	}
	// The shim waits until no process has the output open; the caller does not.
	for _, o := range x.out {
		o.Mute()
	}
	r.wg.Go(func() { x.remove(undo); x.closeOutput() })
	return code, err
}

// start makes the process and lets it run.
func (x *execProcess) start(ctx context.Context, cfg cri.ExecConfig) error {
	process, err := x.r.processOf(ctx, x.c.meta.ID, cfg)
	if err != nil {
		return err
	}
	if err := os.Mkdir(x.dir, 0o700); err != nil {
		return fmt.Errorf("containerd: exec: %w", err)
	}
	req := &tasks.ExecProcessRequest{ContainerID: x.c.meta.ID, ExecID: x.id, Terminal: cfg.TTY,
		Spec: &anypb.Any{TypeUrl: processType, Value: process}}
	if cfg.Stdin != nil {
		req.Stdin = filepath.Join(x.dir, "stdin")
		if err := stdio.MakeInput(req.Stdin); err != nil {
			return err
		}
	}
	req.Stdout = filepath.Join(x.dir, "stdout")
	if err := x.pipe(req.Stdout, cfg.Stdout); err != nil {
		return err
	}
	if !cfg.TTY {
		req.Stderr = filepath.Join(x.dir, "stderr")
		if err := x.pipe(req.Stderr, cfg.Stderr); err != nil {
			return err
		}
	}
	if _, err := x.r.client.TaskService().Exec(ctx, req); err != nil {
		return execError(err)
	}
	resp, err := x.r.client.TaskService().Start(ctx, &tasks.StartRequest{ContainerID: x.c.meta.ID, ExecID: x.id})
	for _, o := range x.out {
		o.Opened()
	}
	if err != nil {
		return execError(err)
	}
	x.pid = resp.Pid
	return nil
}

func (x *execProcess) pipe(path string, to io.Writer) error {
	o, err := stdio.OpenPipe(path, to)
	if err == nil {
		x.out = append(x.out, o)
	}
	return err
}

func (x *execProcess) closeOutput() {
	for _, o := range x.out {
		o.Close()
	}
}

// execError turns the error of a command that cannot be executed into a *cri.StartError.
func execError(err error) error {
	if msg, code, ok := startFailure(err); ok {
		return &cri.StartError{Message: msg, ExitCode: code}
	}
	err = fromGRPC(err)
	if errdefs.IsNotFound(err) || strings.Contains(err.Error(), "cannot exec in a stopped") {
		return cri.ErrNotRunning
	}
	return fmt.Errorf("containerd: exec: %w", err)
}

// processOf is the specification of the container's own process, with cfg's command line and terminal.
func (r *Runtime) processOf(ctx context.Context, id string, cfg cri.ExecConfig) ([]byte, error) {
	rec, err := r.client.ContainerService().Get(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("containerd: exec: %w", err)
	}
	var spec specs.Spec
	if err := json.Unmarshal(rec.Spec.GetValue(), &spec); err != nil {
		return nil, fmt.Errorf("containerd: exec: the container's specification: %w", err)
	}
	p := spec.Process
	p.Args, p.Terminal = cfg.Command, cfg.TTY
	hasTerm := slices.ContainsFunc(p.Env, func(kv string) bool { return strings.HasPrefix(kv, "TERM=") })
	if cfg.TTY && !hasTerm {
		p.Env = append(p.Env, "TERM=xterm")
	}
	if p.ConsoleSize = nil; cfg.TTY {
		p.ConsoleSize = firstSize(ctx, cfg.Resize)
	}
	data, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("containerd: exec: %w", err)
	}
	return data, nil
}

// firstSize is the initial size of the caller's terminal, if it comes in time; else nil. Without it a program that
// asks for the size at its start would get none.
func firstSize(ctx context.Context, sizes <-chan cri.TermSize) *specs.Box {
	t := time.NewTimer(sizeWait)
	defer t.Stop()
	select {
	case s, ok := <-sizes:
		if ok {
			return &specs.Box{Width: uint(s.Width), Height: uint(s.Height)}
		}
	case <-t.C:
	case <-ctx.Done():
	}
	return nil
}

// feed copies the input until it ends, and then closes the process's input.
func (x *execProcess) feed(ctx context.Context, from io.Reader) {
	// Opening it waits until the shim reads: input that is written and closed before that would be lost.
	pipe, err := fifo.OpenFifo(ctx, filepath.Join(x.dir, "stdin"), unix.O_WRONLY, 0)
	if err != nil {
		return
	}
	stop := context.AfterFunc(ctx, func() { pipe.Close() })
	defer stop()
	io.Copy(pipe, from) //nolint:errcheck // a process need not read all of it
	pipe.Close()
	// If it is closed already, or the process has ended, this does nothing.
	x.r.client.TaskService().CloseIO(ctx, &tasks.CloseIORequest{ContainerID: x.c.meta.ID, ExecID: x.id, Stdin: true})
}

// wait returns the exit code, or an error if ctx ends before.
func (x *execProcess) wait(ctx context.Context) (int32, error) {
	resp, err := x.r.client.TaskService().Wait(ctx, &tasks.WaitRequest{ContainerID: x.c.meta.ID, ExecID: x.id})
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case err != nil:
		return 0, fmt.Errorf("containerd: exec: %w", fromGRPC(err))
	}
	return int32(resp.ExitStatus), nil
}

// drained waits until all output is passed on, and reports whether it has ended. A background process that holds it
// open is waited for only as long as it writes.
func (x *execProcess) drained(ctx context.Context) bool {
	t := time.NewTicker(stdio.Silence)
	defer t.Stop()
	for _, o := range x.out {
		for before := o.Moved(); ; {
			select {
			case <-o.Done():
			case <-ctx.Done():
				return false
			case <-t.C:
				if now := o.Moved(); now != before || o.Writing() {
					before = now
					continue
				}
				return false
			}
			break
		}
	}
	return true
}

// kill kills the process and all its children, which are in its session, because runc makes it a session leader. It
// waits until they have ended, but not for ever for one that is stuck in the kernel.
func (x *execProcess) kill(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, killTimeout)
	defer cancel()
	for x.killSession(ctx) > 0 && ctx.Err() == nil { // again: it may have forked meanwhile
	}
	x.r.client.TaskService().Kill(ctx, &tasks.KillRequest{ContainerID: x.c.meta.ID, ExecID: x.id, Signal: uint32(unix.SIGKILL)})
	x.wait(ctx) //nolint:errcheck // it has ended, or is stuck in the kernel
}

// killSession kills the session's processes, waits for their end until ctx ends, and returns how many there were.
func (x *execProcess) killSession(ctx context.Context) (n int) {
	var killed []int // pidfds
	for _, pid := range sessionOf(x.pid) {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // it has ended
		}
		if inCgroup(uint32(pid), x.c.meta.Cgroup) && unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil {
			killed = append(killed, fd)
			continue
		}
		unix.Close(fd)
	}
	for _, fd := range killed {
		awaitEnd(ctx, fd)
		unix.Close(fd)
	}
	return len(killed)
}

// awaitEnd waits until the process of a pidfd has ended, or until ctx's deadline.
func awaitEnd(ctx context.Context, fd int) {
	deadline, _ := ctx.Deadline()
	for ctx.Err() == nil {
		left := max(time.Until(deadline), 0) + time.Millisecond
		if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds())); !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// remove removes the process from containerd and the shim, and its pipes.
func (x *execProcess) remove(ctx context.Context) {
	_, err := x.r.client.TaskService().DeleteProcess(ctx, &tasks.DeleteProcessRequest{ContainerID: x.c.meta.ID, ExecID: x.id})
	if err = fromGRPC(err); err != nil && !errdefs.IsNotFound(err) && x.r.run.Err() == nil {
		x.r.cfg.Log.Warn("a process added by exec could not be removed", "container", x.c.meta.Name, "err", err)
	}
	os.RemoveAll(x.dir) //nolint:errcheck // it is removed with the container's directory at the latest
}

// resize passes changes of a terminal's size on. execID is empty for the container's own process.
func (r *Runtime) resize(ctx context.Context, id, execID string, sizes <-chan cri.TermSize) {
	for {
		select {
		case s, ok := <-sizes:
			if !ok {
				return
			}
			r.client.TaskService().ResizePty(ctx, &tasks.ResizePtyRequest{
				ContainerID: id, ExecID: execID, Width: uint32(s.Width), Height: uint32(s.Height)})
		case <-ctx.Done():
			return
		}
	}
}

// killExecs kills the exec processes of the last run in a container, because the clients of their streams are
// disconnected.
func (r *Runtime) killExecs(ctx context.Context, c *container) error {
	dirs, err := filepath.Glob(filepath.Join(c.dir, execPrefix+"*"))
	if err != nil {
		return fmt.Errorf("containerd: exec: %w", err)
	}
	var errs []error
	for _, dir := range dirs {
		x := &execProcess{r: r, c: c, dir: dir, id: strings.TrimPrefix(filepath.Base(dir), execPrefix)}
		resp, err := r.client.TaskService().Get(ctx, &tasks.GetRequest{ContainerID: c.meta.ID, ExecID: x.id})
		if err == nil {
			// Its output is still read, or it may block on it, and the shim too.
			errs = append(errs, x.pipe(filepath.Join(dir, "stdout"), io.Discard), x.pipe(filepath.Join(dir, "stderr"), io.Discard))
			for _, o := range x.out {
				o.Opened()
			}
			x.pid = resp.Process.Pid
			x.kill(ctx)
		}
		x.remove(ctx)
		x.closeOutput()
	}
	return errors.Join(errs...)
}

// sessionOf are the living processes of the session that pid leads, itself included.
func sessionOf(pid uint32) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil || pid == 0 {
		return nil
	}
	var list []int
	for _, e := range entries {
		n, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		data, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // it has ended
		}
		// The name, in parentheses, may contain any character. After it: state, parent, group, session.
		_, rest, _ := strings.Cut(string(data[strings.LastIndexByte(string(data), ')')+1:]), " ")
		if f := strings.Fields(rest); len(f) > 3 && f[0] != "Z" && f[0] != "X" && f[3] == strconv.FormatUint(uint64(pid), 10) {
			list = append(list, n)
		}
	}
	return list
}
