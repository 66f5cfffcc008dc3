package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/containerd/containerd/errdefs"
	"github.com/containerd/containerd/runtime"
	"golang.org/x/sys/unix"
)

// process is one that a keeper stays with.
type process struct {
	dir string
	io  runtime.IO
	// mine reports whether the process with a number is of the container: a number may be another's by now.
	mine func(pid uint32) bool

	mu    sync.Mutex
	pid   uint32 // 0: it was not made
	ended chan struct{}
	end   runtime.Exit // once ended is closed
}

func newProcess(dir string, io runtime.IO, mine func(uint32) bool) *process {
	return &process{dir: dir, io: io, mine: mine, ended: make(chan struct{})}
}

// make has a keeper make the process with a command of runc. what is what it does, for errors; gate is where the process waits
// for its start, if it does.
func (p *process) make(ctx context.Context, n *nursery, what, gate string, command []string) error {
	r := request{dir: p.dir, terminal: p.io.Terminal, gate: gate, command: command}
	for _, s := range []struct {
		to  *string
		uri string
	}{{&r.in, p.io.Stdin}, {&r.out, p.io.Stdout}, {&r.errOut, p.io.Stderr}} {
		path, err := streamPath(s.uri)
		if err != nil {
			return err
		}
		*s.to = path
	}
	if err := writeJSON(filepath.Join(p.dir, "task.json"), p.io); err != nil {
		return err
	}
	said, err := n.keep(ctx, r)
	if err != nil {
		return err
	}
	verb, rest, _ := strings.Cut(said, " ")
	switch verb {
	case "made":
	case "failed": // what was asked for cannot be: the caller's fault, in runc's words
		if text := saidError(p.dir); text != "" {
			said = text
		}
		return fmt.Errorf("OCI runtime %s failed: %s", what, said)
	default: // the machine's
		return fmt.Errorf("the keeper of a process: %s", rest)
	}
	pid, err := strconv.ParseUint(rest, 10, 32)
	if err != nil {
		return fmt.Errorf("the keeper says %q", said)
	}
	p.mu.Lock()
	p.pid = uint32(pid)
	p.mu.Unlock()
	return nil
}

// streamPath is the named pipe of a stream. Programs that take a container's log, which nerdctl asks for, are not started. A file is refused, as
// a caller's log would be one: the container would have the host's file itself, to read and to write as it likes.
func streamPath(uri string) (string, error) {
	path, ok := strings.CutPrefix(uri, "fifo://")
	if scheme, _, is := strings.Cut(uri, "://"); is && !ok {
		return "", fmt.Errorf("streams of the kind %s are not supported here, only named pipes: %w", scheme, errdefs.ErrNotImplemented)
	}
	return path, nil
}

// watch calls done when the process has ended. It must be called once, when the process was made or found.
func (p *process) watch(done func(runtime.Exit)) {
	end := p.await()
	p.mu.Lock()
	end.Pid = p.pid
	p.end = end
	p.mu.Unlock()
	close(p.ended)
	done(end)
}

// lostCode is the code of a process whose keeper was killed, so that its own is not known.
const lostCode = 137

// await waits for the process's end.
func (p *process) await() runtime.Exit {
	for {
		f, err := os.OpenFile(filepath.Join(p.dir, "alive"), os.O_RDONLY|unix.O_NONBLOCK, 0)
		if err == nil {
			f.Read(make([]byte, 1)) //nolint:errcheck // it ends when the keeper closes it
			f.Close()               //nolint:errcheck // it was only read
		}
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			break
		}
		time.Sleep(time.Second) // without a descriptor nothing can be said of the process
	}
	if end, ok, err := readEnd(p.dir); ok && err == nil {
		return end
	}
	// The keeper was killed. Its process goes on.
	if fd, err := p.open(); err == nil {
		waitPidfd(fd)
	}
	return runtime.Exit{Status: lostCode, Timestamp: time.Now()}
}

// open opens the process; the error is errdefs.ErrNotFound if it has ended.
func (p *process) open() (int, error) {
	p.mu.Lock()
	pid := p.pid
	p.mu.Unlock()
	if pid == 0 {
		return -1, fmt.Errorf("the process was not made: %w", errdefs.ErrNotFound)
	}
	fd, err := unix.PidfdOpen(int(pid), unix.PIDFD_NONBLOCK)
	if errors.Is(err, unix.ESRCH) {
		return -1, fmt.Errorf("process already finished: %w", errdefs.ErrNotFound)
	}
	if err != nil {
		return -1, err
	}
	// A keeper frees the number only after it has written the end down; without one, the cgroup tells whose it is.
	keeper, err := keeperOf(p.dir)
	if err != nil {
		unix.Close(fd) //nolint:errcheck // it was only opened
		return -1, err
	}
	if _, over, _ := readEnd(p.dir); over || keeper == 0 && !p.mine(pid) {
		unix.Close(fd) //nolint:errcheck // it was only opened
		return -1, fmt.Errorf("process already finished: %w", errdefs.ErrNotFound)
	}
	return fd, nil
}

// waitPidfd waits for a process's end without holding a thread, and closes its pidfd.
func waitPidfd(fd int) {
	f := os.NewFile(uintptr(fd), "pidfd")
	defer f.Close() //nolint:errcheck // it was only read
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	conn.Read(func(fd uintptr) bool { //nolint:errcheck // it ends with the process
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n > 0 || err != nil && !errors.Is(err, unix.EINTR)
	})
}

// signal signals the process.
func (p *process) signal(sig uint32) error {
	fd, err := p.open()
	if err != nil {
		return err
	}
	defer unix.Close(fd) //nolint:errcheck // it was only used to signal
	err = unix.PidfdSendSignal(fd, syscall.Signal(sig), nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("process already finished: %w", errdefs.ErrNotFound)
	}
	return err
}

// exited returns the end, if it has ended.
func (p *process) exited() (runtime.Exit, bool) {
	select {
	case <-p.ended:
		return p.end, true
	default:
		return runtime.Exit{}, false
	}
}

// finished returns the end of a process that has ended. That may be a moment before watch notices: finished waits for it. ok
// is false if the process runs, or was not made.
func (p *process) finished(ctx context.Context) (end runtime.Exit, ok bool) {
	if end, ok = p.exited(); ok {
		return end, true
	}
	fd, err := p.open()
	if err == nil {
		unix.Close(fd) //nolint:errcheck // it was only opened
	}
	p.mu.Lock()
	made := p.pid != 0
	p.mu.Unlock()
	if !made || !errdefs.IsNotFound(err) {
		return end, false
	}
	ctx, cancel := context.WithTimeout(ctx, killTimeout)
	defer cancel()
	if _, err := p.Wait(ctx); err != nil {
		return end, false
	}
	return p.exited()
}

// state is the process's, which is in this status while it has not ended.
func (p *process) state(s runtime.Status) runtime.State {
	p.mu.Lock()
	out := runtime.State{Status: s, Pid: p.pid, Stdin: p.io.Stdin, Stdout: p.io.Stdout, Stderr: p.io.Stderr, Terminal: p.io.Terminal}
	p.mu.Unlock()
	if end, ok := p.exited(); ok {
		out.Status, out.ExitStatus, out.ExitedAt = runtime.StoppedStatus, end.Status, end.Timestamp
	}
	return out
}

// Wait waits for the process's end.
func (p *process) Wait(ctx context.Context) (*runtime.Exit, error) {
	select {
	case <-p.ended:
		end := p.end
		return &end, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ResizePty sets the size of the process's terminal.
func (p *process) ResizePty(_ context.Context, size runtime.ConsoleSize) error {
	return ignoreEnded(p.tell(fmt.Sprintf("size %d %d\n", size.Height, size.Width)))
}

// CloseIO ends the process's input once what was written to it is read.
func (p *process) CloseIO(context.Context) error { return ignoreEnded(p.tell("close\n")) }

// tell gives the keeper a command, which it then obeys whatever becomes of the daemon. The error is errdefs.ErrNotFound if the
// keeper has ended.
func (p *process) tell(command string) error {
	f, err := os.OpenFile(filepath.Join(p.dir, "control"), os.O_WRONLY|unix.O_NONBLOCK, 0)
	if err == nil {
		if err = f.SetWriteDeadline(time.Now().Add(tellTimeout)); err == nil {
			_, err = f.WriteString(command)
		}
		f.Close() //nolint:errcheck // the write's error is what counts
	}
	if errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EPIPE) {
		return fmt.Errorf("the process has no keeper: %w", errdefs.ErrNotFound)
	}
	return err
}

// startTimeout bounds the wait for a process that was let through the gate: others in the pod may have stopped it. It is a variable for
// tests.
var startTimeout = 10 * time.Second

const (
	// startLook is how often it is looked whether somebody still waits.
	startLook = 200 * time.Millisecond
)

// letThrough has the keeper let the process through its gate to run its program, and waits until it does; for no longer than ctx,
// after which it is on its way. The error is errdefs.ErrNotFound if the process or its keeper has ended before.
func (p *process) letThrough(ctx context.Context, gate string) error {
	through := filepath.Join(p.dir, "started")
	if err := unix.Mkfifo(through, 0o600); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	defer os.Remove(through) //nolint:errcheck // it goes with the directory at the latest
	var fds [2]unix.PollFd
	for i, path := range []string{through, filepath.Join(p.dir, "alive")} {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd) //nolint:errcheck // it was only read
		fds[i] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	}
	// Only now: the end of one that ends from here on is seen in the file alive.
	fd, err := p.open()
	if err == nil {
		unix.Close(fd) //nolint:errcheck // it was only opened
		err = p.tell("start\n")
	}
	if err != nil {
		return err
	}
	for end := time.Now().Add(startTimeout); ctx.Err() == nil && time.Now().Before(end); {
		_, err := unix.Poll(fds[:], int(startLook.Milliseconds()))
		switch {
		case err != nil && !errors.Is(err, unix.EINTR):
			return err
		case err == nil && fds[0].Revents != 0:
			return nil
		case err == nil && fds[1].Revents != 0:
			return fmt.Errorf("the process, or its keeper, has ended before its start: %w", errdefs.ErrNotFound)
		}
	}
	if _, err := os.Lstat(gate); err == nil && ctx.Err() == nil {
		return errors.New("the keeper of the process has not let it through: it does not answer")
	}
	return nil // it was let through, and something has stopped it
}

// tellTimeout is how long a keeper may take to have room for a command.
const tellTimeout = 10 * time.Second

// ignoreEnded is for commands that mean nothing to a process that has ended.
func ignoreEnded(err error) error {
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// read reads what an earlier run has left of the process. ok is false if it was not made completely.
func (p *process) read() (ok bool) {
	data, err := os.ReadFile(filepath.Join(p.dir, "task.json"))
	if err != nil || json.Unmarshal(data, &p.io) != nil {
		return false
	}
	text, err := os.ReadFile(filepath.Join(p.dir, "pid"))
	if err != nil {
		return false
	}
	pid, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
	p.pid = uint32(pid)
	return err == nil && pid > 0
}

func writeJSON(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}
