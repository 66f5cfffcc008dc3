package logind

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/godbus/dbus/v5"
)

// DropIns is the directory of logind's settings that a boot forgets.
const DropIns = "/run/systemd/logind.conf.d"

// reloadTime is how long logind may take to read its files again, and reloadStep how often it is asked.
const (
	reloadTime = 2 * time.Second
	reloadStep = 20 * time.Millisecond
)

// RaiseMaxDelay has logind wait for locks so long, in whole seconds rounded up, and returns how long it waits then. If
// it waits so long already, nothing is written.
func (c *Conn) RaiseMaxDelay(ctx context.Context, wish time.Duration) (time.Duration, error) {
	granted, err := c.MaxDelay(ctx)
	if err != nil || granted >= wish {
		return granted, err
	}
	if err := removeDropIns(c.dir, c.owner); err != nil {
		return granted, err
	}
	seconds := int64((wish + time.Second - 1) / time.Second)
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return granted, err
	}
	text := fmt.Sprintf("# Written by minik8sd, so that pods have time to end before this machine shuts down.\n[Login]\nInhibitDelayMaxSec=%d\n", seconds)
	if err := os.WriteFile(filepath.Join(c.dir, fmt.Sprintf("99-minik8s-%07d-%s.conf", seconds, c.owner)), []byte(text), 0o644); err != nil {
		return granted, err
	}
	if err := reload(ctx, c.bus); err != nil {
		return granted, err
	}
	for deadline := time.Now().Add(reloadTime); ; { // it says nothing when it has read them
		if granted, err = c.MaxDelay(ctx); err != nil || granted >= wish || time.Now().After(deadline) {
			return granted, err
		}
		select {
		case <-time.After(reloadStep):
		case <-ctx.Done():
			return granted, ctx.Err()
		}
	}
}

// Files are those that RaiseMaxDelay has written for an owner.
func Files(owner string) ([]string, error) { return files(DropIns, owner) }

// Forget removes what RaiseMaxDelay has written for an owner, and has logind go back to what others have set.
func Forget(ctx context.Context, owner string) error { return forget(ctx, DropIns, owner) }

func forget(ctx context.Context, dir, owner string) error {
	found, err := files(dir, owner)
	if err != nil || len(found) == 0 {
		return err
	}
	if err := removeDropIns(dir, owner); err != nil {
		return err
	}
	bus, err := dbus.ConnectSystemBus(dbus.WithContext(ctx))
	if err != nil {
		return nil //nolint:nilerr // without a bus there is no logind that has read them
	}
	defer bus.Close() //nolint:errcheck // nothing is left to send
	return reload(ctx, bus)
}

// reload has logind read its files again, which it does on SIGHUP.
func reload(ctx context.Context, bus *dbus.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	err := bus.Object("org.freedesktop.systemd1", "/org/freedesktop/systemd1").CallWithContext(ctx,
		"org.freedesktop.systemd1.Manager.KillUnit", 0, "systemd-logind.service", "main", int32(syscall.SIGHUP)).Err
	if err != nil {
		return fmt.Errorf("logind does not read its settings again: %w", err)
	}
	return nil
}

func files(dir, owner string) ([]string, error) {
	return filepath.Glob(filepath.Join(dir, "99-minik8s-*-"+owner+".conf"))
}

func removeDropIns(dir, owner string) error {
	found, err := files(dir, owner)
	for _, f := range found {
		if rerr := os.Remove(f); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}
	return err
}
