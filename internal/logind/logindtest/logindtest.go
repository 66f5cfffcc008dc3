// Package logindtest plays a machine's system bus with systemd-logind on it, for tests: a real dbus-daemon at an address
// of its own, and the part of logind that delays a shutdown. Who connects by DBUS_SYSTEM_BUS_ADDRESS cannot tell it from
// the real one. Only tests and package hosts import it.
package logindtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/godbus/dbus/v5/prop"

	"minik8s/internal/machine"
)

// ErrNoBus means that there is no dbus-daemon on this machine (Debian's package dbus).
var ErrNoBus = errors.New("there is no dbus-daemon here")

// callTime bounds how long a client may take to receive an answer.
const callTime = 10 * time.Second

const manager = "org.freedesktop.login1.Manager"

// Logind is a bus with logind.
type Logind struct {
	// Address is the bus's, for DBUS_SYSTEM_BUS_ADDRESS.
	Address string
	// DropIns is the directory in which it looks for drop-ins when it is told to.
	DropIns string

	daemon   *exec.Cmd
	maxDelay time.Duration // without drop-ins
	bus      *dbus.Conn
	props    *prop.Properties

	mu    sync.Mutex
	locks map[int]*lock
	next  int
	freed chan struct{} // holds one: a lock was released
}

type lock struct {
	who, why string
	pid      int
	arrived  bool
}

// AddressIn is the address of a bus in a directory, also before it is started.
func AddressIn(dir string) string { return "unix:path=" + filepath.Join(dir, "bus") }

const busConfig = `<busconfig>
  <listen>%s</listen>
  <policy context="default">
    <allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/><allow user="*"/>
  </policy>
</busconfig>
`

// Start starts a bus in a directory, with a logind that waits at most so long for locks.
func Start(dir string, maxDelay time.Duration) (_ *Logind, err error) {
	path, err := exec.LookPath("dbus-daemon")
	if err != nil {
		return nil, ErrNoBus
	}
	l := &Logind{Address: AddressIn(dir), DropIns: filepath.Join(dir, "logind.conf.d"), maxDelay: maxDelay, locks: map[int]*lock{}, freed: make(chan struct{}, 1)}
	file := filepath.Join(dir, "bus.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, busConfig, l.Address), 0o644); err != nil {
		return nil, err
	}
	l.daemon = exec.Command(path, "--nofork", "--nopidfile", "--config-file="+file, "--print-address=1")
	out, err := l.daemon.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := machine.StartChild(l.daemon); err != nil {
		return nil, err
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // it prints its address once it listens
		return nil, errors.Join(fmt.Errorf("dbus-daemon: %w", err), l.Close())
	}
	go io.Copy(io.Discard, out) //nolint:errcheck // it says no more
	if l.bus, err = dbus.Connect(l.Address); err == nil {
		err = l.serve(maxDelay)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *Logind) serve(maxDelay time.Duration) (err error) {
	object := dbus.ObjectPath("/org/freedesktop/login1")
	if err := l.bus.ExportMethodTable(map[string]any{"Inhibit": l.inhibit}, object, manager); err != nil {
		return err
	}
	if err := l.bus.ExportMethodTable(map[string]any{"KillUnit": l.killUnit}, "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"); err != nil {
		return err
	}
	if l.props, err = prop.Export(l.bus, object, prop.Map{manager: {
		"InhibitDelayMaxUSec":  {Value: uint64(maxDelay.Microseconds()), Emit: prop.EmitFalse},
		"PreparingForShutdown": {Value: false, Emit: prop.EmitFalse},
	}}); err != nil {
		return err
	}
	for _, name := range []string{"org.freedesktop.systemd1", "org.freedesktop.login1"} {
		if _, err := l.bus.RequestName(name, dbus.NameFlagDoNotQueue); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the bus.
func (l *Logind) Close() error {
	if l.bus != nil {
		l.bus.Close() //nolint:errcheck // the bus ends next
	}
	if l.daemon.ProcessState != nil {
		return nil
	}
	l.daemon.Process.Kill() //nolint:errcheck // it may have ended
	var exit *exec.ExitError
	if err := l.daemon.Wait(); err != nil && !errors.As(err, &exit) {
		return err
	}
	return nil
}

// inhibit gives out a lock: the writing end of a pipe. It is released when nobody has that any more.
func (l *Logind) inhibit(sender dbus.Sender, what, who, why, mode string) (dbus.UnixFD, *dbus.Error) {
	if what != "shutdown" || mode != "delay" && mode != "block" {
		return 0, dbus.MakeFailedError(fmt.Errorf("not played here: %s, %s", what, mode))
	}
	if down, ok := l.props.GetMust(manager, "PreparingForShutdown").(bool); ok && down {
		return 0, dbus.NewError("org.freedesktop.login1.OperationInProgress", []any{"The operation inhibition has been requested for is already running"})
	}
	var pid uint32
	err := l.bus.BusObject().Call("org.freedesktop.DBus.GetConnectionUnixProcessID", 0, string(sender)).Store(&pid)
	if err != nil {
		return 0, dbus.MakeFailedError(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return 0, dbus.MakeFailedError(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	id := l.next
	given := &lock{who: who, why: why, pid: int(pid)}
	l.locks[id] = given
	go func() {
		arrived(r, int(pid))
		l.mu.Lock()
		given.arrived = true
		l.mu.Unlock()
		w.Close()               //nolint:errcheck // the copy is what counts
		r.Read(make([]byte, 1)) //nolint:errcheck // the end is what it waits for
		r.Close()               //nolint:errcheck // as above
		l.mu.Lock()
		delete(l.locks, id)
		l.mu.Unlock()
		select {
		case l.freed <- struct{}{}:
		default:
		}
	}()
	return dbus.UnixFD(w.Fd()), nil
}

// arrived waits until a process has its copy of the writing end of a pipe. Nothing says when the answer with it has been
// sent.
func arrived(r *os.File, pid int) {
	own := fmt.Sprintf("/proc/self/fd/%d", r.Fd())
	pipe, err := os.Readlink(own)
	if err != nil {
		return
	}
	want := 1
	if pid == os.Getpid() {
		want = 3 // both ends, and the copy
	}
	for deadline := time.Now().Add(callTime); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		n := 0
		fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, fd := range fds {
			if to, err := os.Readlink(fd); err == nil && to == pipe {
				n++
			}
		}
		if err != nil || n >= want || len(fds) == 0 {
			return
		}
	}
}

// killUnit reads the drop-ins, as logind does on SIGHUP.
func (l *Logind) killUnit(unit, _ string, sig int32) *dbus.Error {
	if unit != "systemd-logind.service" || syscall.Signal(sig) != syscall.SIGHUP {
		return dbus.MakeFailedError(fmt.Errorf("not played here: signal %d for %s", sig, unit))
	}
	files, err := filepath.Glob(filepath.Join(l.DropIns, "*.conf")) // they are sorted
	if err != nil {
		return dbus.MakeFailedError(err)
	}
	delay := uint64(l.maxDelay.Microseconds())
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return dbus.MakeFailedError(err)
		}
		for line := range strings.Lines(string(text)) {
			var seconds uint64
			if _, err := fmt.Sscanf(line, "InhibitDelayMaxSec=%d", &seconds); err == nil {
				delay = seconds * 1e6
			}
		}
	}
	l.props.SetMust(manager, "InhibitDelayMaxUSec", delay)
	return nil
}

// Locks says who has received a lock, and why.
func (l *Logind) Locks() (out []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.locks {
		if k.arrived {
			out = append(out, k.who+": "+k.why)
		}
	}
	return out
}

// LockedBy reports whether a process has received a lock.
func (l *Logind) LockedBy(pid int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.locks {
		if k.arrived && k.pid == pid {
			return true
		}
	}
	return false
}

// Announce tells that a shutdown begins, or that it was cancelled.
func (l *Logind) Announce(down bool) error {
	l.props.SetMust(manager, "PreparingForShutdown", down)
	return l.bus.Emit("/org/freedesktop/login1", manager+".PrepareForShutdown", down)
}

// ShutDown announces a shutdown and waits until all locks are released, at most as long as logind would; false: some
// were not.
func (l *Logind) ShutDown(ctx context.Context) (released bool, err error) {
	max, ok := l.props.GetMust(manager, "InhibitDelayMaxUSec").(uint64)
	if !ok {
		return false, errors.New("no InhibitDelayMaxUSec")
	}
	if err := l.Announce(true); err != nil {
		return false, err
	}
	late := time.NewTimer(time.Duration(max) * time.Microsecond)
	defer late.Stop()
	for {
		l.mu.Lock()
		held := len(l.locks)
		l.mu.Unlock()
		if held == 0 {
			return true, nil
		}
		select {
		case <-l.freed:
		case <-late.C:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// Boot has it forget the shutdown, as the logind of the next boot knows nothing of it.
func (l *Logind) Boot() { l.props.SetMust(manager, "PreparingForShutdown", false) }
