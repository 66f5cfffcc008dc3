package task

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/containerd/containerd/errdefs"
	"golang.org/x/sys/unix"
)

// runc is the program that makes containers, and where it keeps what it knows of them.
type runc struct {
	program string
	root    string // of one of containerd's namespaces
}

// dir is where runc keeps what it knows of a container.
func (r runc) dir(id string) string { return filepath.Join(r.root, id) }

// args is a command line of runc, which writes its errors to a file in dir.
func (r runc) args(dir string, command ...string) []string {
	return append([]string{r.program, "--root", r.root, "--log", filepath.Join(dir, "log.json"), "--log-format", "json"}, command...)
}

// run runs runc for what is asked for rarely.
func (r runc) run(ctx context.Context, command ...string) error {
	cmd := exec.CommandContext(ctx, r.program, append([]string{"--root", r.root}, command...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("runc %s: %w: %s", command[0], err, out)
	}
	return nil
}

// saidError is the last error in runc's log in dir; empty if there is none.
func saidError(dir string) (text string) {
	f, err := os.Open(filepath.Join(dir, "log.json"))
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // it was only read
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var entry struct{ Level, Msg string }
		if json.Unmarshal(lines.Bytes(), &entry) == nil && entry.Level == "error" {
			text = entry.Msg
		}
	}
	return text
}

// cgroups are the directories of a container's cgroup, as runc knows them; none if it does not.
func (r runc) cgroups(id string) (dirs []string) {
	data, err := os.ReadFile(filepath.Join(r.dir(id), "state.json"))
	if err != nil {
		return nil
	}
	var state struct {
		Paths map[string]string `json:"cgroup_paths"`
	}
	if json.Unmarshal(data, &state) != nil {
		return nil
	}
	for _, dir := range state.Paths {
		dirs = append(dirs, dir)
	}
	return dirs
}

// gate is the named pipe at which a container's process waits until it may run its program; it opens it for writing.
func (r runc) gate(id string) string { return filepath.Join(r.dir(id), "exec.fifo") }

// waiting reports whether a container's process has not been let through the gate.
func (r runc) waiting(id string) bool {
	_, err := os.Stat(r.gate(id))
	return err == nil
}

// gateTimeout bounds the wait for a process that is there but does not come through: one that is stuck in the kernel, or
// stopped.
const gateTimeout = 10 * time.Second

// gateLook is how often it is looked whether somebody still waits.
const gateLook = 200 * time.Millisecond

// letThrough lets a container's process run its program, as "runc start" does. A process that has ended would never open
// the pipe, so its end is watched beside it, by its pidfd.
func (r runc) letThrough(ctx context.Context, id string, pidfd int) error {
	fd, err := unix.Open(r.gate(id), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("the container was started before: %w: %w", err, errdefs.ErrFailedPrecondition)
	}
	defer unix.Close(fd) //nolint:errcheck // it was only read
	for end := time.Now().Add(gateTimeout); ; {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(pidfd), Events: unix.POLLIN}}
		_, err := unix.Poll(p, int(gateLook.Milliseconds()))
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case p[0].Revents&unix.POLLIN != 0:
		case p[1].Revents != 0:
			return fmt.Errorf("the container's process has ended before its start: %w", errdefs.ErrFailedPrecondition)
		case time.Now().After(end):
			return errors.New("the container's process does not run")
		default:
			continue
		}
		var b [1]byte
		if n, err := unix.Read(fd, b[:]); err != nil || n != 1 {
			return fmt.Errorf("the container's process: %d bytes: %w", n, err)
		}
		if err := os.Remove(r.gate(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
}
