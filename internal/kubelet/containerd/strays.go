package containerd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/containerd/containerd/runtime/v2/shim"
	"golang.org/x/sys/unix"
)

// A daemon that is killed while it starts a shim leaves that start under way: a helper process, which may
// make a shim that no record names. Both are found by their command line, which has our socket in it.

// shimProcess is a process of the shim's program that belongs to this runtime.
type shimProcess struct {
	pid    int
	id     string // of its slot
	helper bool   // it starts a shim and is none itself
}

// shimProcesses are those there are now.
func (r *Runtime) shimProcesses(socket string) ([]shimProcess, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("containerd: %w", err)
	}
	var list []shimProcess
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		line, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err != nil || !bytes.HasPrefix(line, []byte(r.bin.shim+"\x00")) {
			continue
		}
		p := shimProcess{pid: pid}
		args := bytes.Split(bytes.TrimSuffix(line, []byte{0}), []byte{0})
		ours := false
		for i, a := range args[:len(args)-1] {
			switch string(a) {
			case "-address":
				ours = string(args[i+1]) == socket
			case "-id":
				p.id = string(args[i+1])
			}
		}
		last := string(args[len(args)-1])
		p.helper = last == "start"
		if ours && last != "delete" { // which cleans up, and ends
			list = append(list, p)
		}
	}
	return list, nil
}

// endHelpers ends what the last run was about to start, before anything is loaded.
func (r *Runtime) endHelpers(ctx context.Context, socket string) error {
	return r.endShims(ctx, socket, func(p shimProcess) bool { return p.helper })
}

// lateStrays is how long after a start the strays are looked for again: a process that the last run had
// forked, but that had not come to execute the shim's program, is not recognized at first.
const lateStrays = 2 * time.Second

// afterStart does, once, what a start need not wait for.
func (r *Runtime) afterStart(ctx context.Context) {
	t := time.NewTimer(lateStrays)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return
	case <-t.C:
	}
	r.endLateStrays(ctx)
	if r.unsettled == nil {
		return
	}
	if err := r.unsettled(); err != nil {
		r.cfg.Log.Warn("runc and the shim will be unpacked again at the next start", "err", err)
	}
}

// endLateStrays ends what belongs to slots there are not. A slot has its directory before its
// shim is started and until after it has ended.
func (r *Runtime) endLateStrays(ctx context.Context) {
	err := r.endShims(ctx, r.socket, func(p shimProcess) bool {
		_, err := os.Stat(r.slotDir(p.id))
		return errors.Is(err, os.ErrNotExist)
	})
	if err != nil {
		r.cfg.Log.Warn("shims of the last run could not be ended", "err", err)
	}
}

// endStrays ends the shims of slots that are not kept.
func (r *Runtime) endStrays(ctx context.Context, socket string, keep map[string]bool) error {
	return r.endShims(ctx, socket, func(p shimProcess) bool { return !p.helper && !keep[p.id] })
}

func (r *Runtime) endShims(ctx context.Context, socket string, which func(shimProcess) bool) error {
	list, err := r.shimProcesses(socket)
	if err != nil {
		return err
	}
	for _, p := range list {
		if !which(p) {
			continue
		}
		fd, err := unix.PidfdOpen(p.pid, 0)
		if errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil {
			return fmt.Errorf("containerd: stray shim: %w", err)
		}
		err = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		if err == nil {
			// The descriptor becomes readable when the process has ended.
			_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 5000)
		}
		unix.Close(fd)
		if err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("containerd: stray shim: %w", err)
		}
		if address, err := shim.SocketAddress(r.ns(ctx), socket, p.id); err == nil && !p.helper {
			if err := shim.RemoveSocket(address); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("containerd: stray shim: %w", err)
			}
		}
	}
	return nil
}
