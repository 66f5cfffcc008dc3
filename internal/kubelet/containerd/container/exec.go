package container

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
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
	c       *Container
	id, dir string
	pid     uint32
	out     []*stdio.Pipe
}

// Exec runs a process in the container, with the streams of cfg, and returns its exit code. When ctx ends, the process
// and its children are killed. The error is cri.ErrNotRunning, or a *cri.StartError if the command cannot be executed.
func (c *Container) Exec(ctx context.Context, cfg cri.ExecConfig) (int32, error) {
	if !c.Running() {
		return 0, cri.ErrNotRunning
	}
	x := &execProcess{c: c, id: newID()[:16]}
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
		go c.resize(talk, x.id, cfg.Resize)
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
	// Others may have the output open for longer; the caller does not wait for them.
	for _, o := range x.out {
		o.Mute()
	}
	c.set.wg.Go(func() { x.remove(undo); x.closeOutput() })
	return code, err
}

// start makes the process and lets it run.
func (x *execProcess) start(ctx context.Context, cfg cri.ExecConfig) error {
	process, err := x.spec(ctx, cfg)
	if err != nil {
		return err
	}
	if err := os.Mkdir(x.dir, 0o700); err != nil {
		return fmt.Errorf("containerd: exec: %w", err)
	}
	req := &tasks.ExecProcessRequest{ContainerID: x.c.Meta.ID, ExecID: x.id, Terminal: cfg.TTY,
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
	if _, err := x.c.set.tasks().Exec(ctx, req); err != nil {
		return execError(err)
	}
	resp, err := x.c.set.tasks().Start(ctx, &tasks.StartRequest{ContainerID: x.c.Meta.ID, ExecID: x.id})
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

// spec is the specification of the container's own process, with cfg's command line and terminal.
func (x *execProcess) spec(ctx context.Context, cfg cri.ExecConfig) ([]byte, error) {
	rec, err := x.c.set.cfg.Containerd.Client.ContainerService().Get(ctx, x.c.Meta.ID)
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
	// Opening it waits until somebody reads: input that is written and closed before that would be lost.
	pipe, err := fifo.OpenFifo(ctx, filepath.Join(x.dir, "stdin"), unix.O_WRONLY, 0)
	if err != nil {
		return
	}
	stop := context.AfterFunc(ctx, func() { pipe.Close() })
	defer stop()
	io.Copy(pipe, from) //nolint:errcheck // a process need not read all of it
	pipe.Close()
	// If it is closed already, or the process has ended, this does nothing.
	x.c.set.tasks().CloseIO(ctx, &tasks.CloseIORequest{ContainerID: x.c.Meta.ID, ExecID: x.id, Stdin: true})
}

// wait returns the exit code, or an error if ctx ends before.
func (x *execProcess) wait(ctx context.Context) (int32, error) {
	resp, err := x.c.set.tasks().Wait(ctx, &tasks.WaitRequest{ContainerID: x.c.Meta.ID, ExecID: x.id})
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

// remove removes the process from containerd, and its pipes.
func (x *execProcess) remove(ctx context.Context) {
	_, err := x.c.set.tasks().DeleteProcess(ctx, &tasks.DeleteProcessRequest{ContainerID: x.c.Meta.ID, ExecID: x.id})
	if err = fromGRPC(err); err != nil && !errdefs.IsNotFound(err) && x.c.set.run.Err() == nil {
		x.c.set.cfg.Log.Warn("a process added by exec could not be removed", "container", x.c.Meta.Name, "err", err)
		return // the next start finds it by its directory
	}
	os.RemoveAll(x.dir) //nolint:errcheck // it is removed with the container's directory at the latest
}

// resize passes changes of a terminal's size on. execID is empty for the container's own process.
func (c *Container) resize(ctx context.Context, execID string, sizes <-chan cri.TermSize) {
	for {
		select {
		case s, ok := <-sizes:
			if !ok {
				return
			}
			c.set.tasks().ResizePty(ctx, &tasks.ResizePtyRequest{
				ContainerID: c.Meta.ID, ExecID: execID, Width: uint32(s.Width), Height: uint32(s.Height)})
		case <-ctx.Done():
			return
		}
	}
}

// killExecs kills the exec processes of the last run in a container, because the clients of their streams are
// disconnected. Nobody waits for their ends: one that is stuck in the kernel, or frozen, would hold up all pods of the node.
func (c *Container) killExecs() error {
	dirs, err := filepath.Glob(filepath.Join(c.dir, execPrefix+"*"))
	if err != nil {
		return fmt.Errorf("containerd: exec: %w", err)
	}
	for _, dir := range dirs {
		x := &execProcess{c: c, dir: dir, id: strings.TrimPrefix(filepath.Base(dir), execPrefix)}
		c.set.wg.Go(func() {
			if err := x.killLeft(c.set.run); err != nil {
				c.set.cfg.Log.Warn("a process that was added to a container before the restart could not be ended", "container", c.Meta.Name, "pod", c.Meta.PodNamespace+"/"+c.Meta.PodName, "err", err)
			}
		})
	}
	return nil
}

// killLeft ends and removes an exec process of the last run.
func (x *execProcess) killLeft(ctx context.Context) (err error) {
	if resp, gerr := x.c.set.tasks().Get(ctx, &tasks.GetRequest{ContainerID: x.c.Meta.ID, ExecID: x.id}); gerr == nil {
		// Its output is still read, or it may block on it.
		err = errors.Join(x.pipe(filepath.Join(x.dir, "stdout"), io.Discard), x.pipe(filepath.Join(x.dir, "stderr"), io.Discard))
		for _, o := range x.out {
			o.Opened()
		}
		x.pid = resp.Process.Pid
		x.kill(ctx)
	}
	if ctx.Err() == nil { // else the next start finds it
		x.remove(ctx)
	}
	x.closeOutput()
	return err
}
