package hosts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"minik8s/internal/logind/logindtest"
)

func (h *Host) busDir() string { return filepath.Join(h.lab.dir, "bus-"+h.Name) }

// StartLogind gives the host a system bus with a logind, which waits at most so long for locks. The error is
// logindtest.ErrNoBus where there is no dbus-daemon.
func (h *Host) StartLogind(maxDelay time.Duration) error {
	if h.logind != nil {
		return fmt.Errorf("%s has a logind already", h.Name)
	}
	if err := os.MkdirAll(h.busDir(), 0o755); err != nil {
		return err
	}
	l, err := logindtest.Start(h.busDir(), maxDelay)
	if err != nil {
		return err
	}
	h.logind = l
	return nil
}

// Logind is the host's; nil if it has none.
func (h *Host) Logind() *logindtest.Logind { return h.logind }

// ShutDown shuts the machine down as systemd does: logind announces it and waits for locks, then the daemon is told to
// stop, and what runs then is killed. The error says so if the locks were not released in time. Start is its boot.
func (h *Host) ShutDown(ctx context.Context) error {
	if h.logind == nil {
		return fmt.Errorf("%s has no logind", h.Name)
	}
	released, err := h.logind.ShutDown(ctx)
	if err == nil && !released {
		err = fmt.Errorf("%s: the machine has waited for %s in vain", h.Name, strings.Join(h.logind.Locks(), ", "))
	}
	if h.Running() {
		err = errors.Join(err, h.Signal(syscall.SIGTERM))
	}
	for _, dir := range h.cgroupDirs() {
		pids, rerr := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if rerr != nil {
			continue // it has just gone
		}
		for _, pid := range strings.Fields(string(pids)) {
			if n, cerr := strconv.Atoi(pid); cerr == nil {
				syscall.Kill(n, syscall.SIGKILL) //nolint:errcheck // it may have ended
			}
		}
	}
	h.logind.Boot()
	return err
}
