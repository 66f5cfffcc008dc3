package embed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	task "github.com/containerd/containerd/api/runtime/task/v2"
	"github.com/containerd/containerd/runtime/v2/shim"
	"github.com/containerd/ttrpc"
	"golang.org/x/sys/unix"
)

// If a daemon is killed while it starts a shim, the start continues: a helper process may go on to make a shim that
// no record names. Both are found by their command line, which contains our socket.

// Shim is a process of the shim's program that belongs to this containerd.
type Shim struct {
	Pid    int
	ID     string // of the sandbox it is for
	Helper bool   // it only starts a shim
	// Started is when the process was forked, since the machine was booted.
	Started time.Duration
}

// Uptime is the time since the machine was booted, by which processes say when they were started.
func Uptime() time.Duration {
	var up unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &up) != nil {
		return 0
	}
	return time.Duration(up.Nano())
}

// clockTick is the unit of times in /proc/PID/stat, see proc_pid_stat(5); it is the same on all machines that Go runs on.
const clockTick = 10 * time.Millisecond

// startedAt is when a process was forked, since the machine was booted.
func startedAt(pid int) (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name, in parentheses, may hold anything. The start is the 20th field after it.
	const start = 19
	f := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(f) <= start {
		return 0, fmt.Errorf("/proc/%d/stat is too short", pid)
	}
	ticks, err := strconv.ParseInt(string(f[start]), 10, 64)
	return time.Duration(ticks) * clockTick, err
}

// Shims are the shims' processes there are now.
func (c *Containerd) Shims() ([]Shim, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("containerd: %w", err)
	}
	var list []Shim
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		line, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err != nil || !bytes.HasPrefix(line, []byte(c.Programs.Shim+"\x00")) {
			continue
		}
		s, ok := parseShim(pid, line, c.Socket)
		if !ok {
			continue
		}
		if s.Started, err = startedAt(pid); err != nil {
			continue // it has ended
		}
		list = append(list, s)
	}
	return list, nil
}

// parseShim parses a shim's command line; ok is false for a shim of another containerd, and for a process that only
// cleans up.
func parseShim(pid int, line []byte, socket string) (s Shim, ok bool) {
	s.Pid = pid
	args := bytes.Split(bytes.TrimSuffix(line, []byte{0}), []byte{0})
	for i, a := range args[:len(args)-1] {
		switch string(a) {
		case "-address":
			ok = string(args[i+1]) == socket
		case "-id":
			s.ID = string(args[i+1])
		}
	}
	last := string(args[len(args)-1])
	s.Helper = last == "start"
	return s, ok && last != "delete"
}

// EndShims kills the shims for which which is true, waits for their end, and removes their sockets.
func (c *Containerd) EndShims(ctx context.Context, which func(Shim) bool) error {
	list, err := c.Shims()
	if err != nil {
		return err
	}
	for _, s := range list {
		if !which(s) {
			continue
		}
		if err := endProcess(s.Pid); err != nil {
			return fmt.Errorf("containerd: ending shim %d: %w", s.Pid, err)
		}
		if s.Helper {
			continue
		}
		if err := c.RemoveShimSocket(ctx, s.ID); err != nil {
			return err
		}
	}
	return nil
}

// EndAllShims ends every shim of this containerd, also one whose start a daemon that was killed had begun: its helper
// may start it while others are ended, so it is looked again until there is none.
func (c *Containerd) EndAllShims(ctx context.Context) error {
	for ctx.Err() == nil {
		list, err := c.Shims()
		if err != nil || len(list) == 0 {
			return err
		}
		if err := c.EndShims(ctx, func(Shim) bool { return true }); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// endProcess kills a process and waits, up to 5 s, until it has ended.
func endProcess(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	err = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	if err == nil {
		// The descriptor becomes readable when the process has ended.
		_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 5000)
	}
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINTR) {
		return nil
	}
	return err
}

// RemoveShimSocket removes the socket of a shim that has ended: one that was killed leaves it.
func (c *Containerd) RemoveShimSocket(ctx context.Context, id string) error {
	address, err := shim.SocketAddress(c.Context(ctx), c.Socket, id)
	if err == nil {
		err = shim.RemoveSocket(address)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("containerd: socket of shim %s: %w", id, err)
	}
	return nil
}

// ShimPid asks a shim for its process id. The error is errdefs.ErrNotFound if there is no such shim.
func (c *Containerd) ShimPid(ctx context.Context, id string) (int, error) {
	s, err := c.server.shims.Get(ctx, id)
	if err != nil {
		return 0, fmt.Errorf("containerd: shim: %w", err)
	}
	conn, ok := s.Client().(*ttrpc.Client)
	if !ok {
		return 0, fmt.Errorf("containerd: a shim that speaks %T", s.Client())
	}
	resp, err := task.NewTaskClient(conn).Connect(ctx, &task.ConnectRequest{ID: id})
	if err != nil {
		return 0, fmt.Errorf("containerd: shim: %w", err)
	}
	return int(resp.ShimPid), nil
}
