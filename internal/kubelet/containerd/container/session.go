package container

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"golang.org/x/sys/unix"

	"minik8s/internal/kubelet/cgroup"
)

// kill kills the process and all its children, which are in its session, because runc makes it a session leader. It
// waits until they have ended, but not for ever for one that is stuck in the kernel.
func (x *execProcess) kill(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, killTimeout)
	defer cancel()
	for x.killSession(ctx) > 0 && ctx.Err() == nil { // again: it may have forked meanwhile
	}
	x.c.set.tasks().Kill(ctx, &tasks.KillRequest{ContainerID: x.c.Meta.ID, ExecID: x.id, Signal: uint32(unix.SIGKILL)})
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
		if cgroup.Has(x.c.Meta.Cgroup, uint32(pid)) && unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil {
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
