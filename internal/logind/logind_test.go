package logind

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"minik8s/internal/logind/logindtest"
)

func bus(t *testing.T, maxDelay time.Duration) *logindtest.Logind {
	t.Helper()
	l, err := logindtest.Start(t.TempDir(), maxDelay)
	if errors.Is(err, logindtest.ErrNoBus) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", l.Address)
	return l
}

// A shutdown is heard, and waits for the lock alone.
func TestShutdownWaitsForTheLock(t *testing.T) {
	l := bus(t, time.Minute)
	c, err := Open(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if down, err := c.ShuttingDown(t.Context()); down || err != nil {
		t.Fatal(down, err)
	}
	lock, err := c.Inhibit(t.Context(), "minik8sd", "pods end first")
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); strings.Join(l.Locks(), ",") != "minik8sd: pods end first"; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("locks: %q", l.Locks())
		}
	}
	over := make(chan bool)
	go func() {
		released, err := l.ShutDown(t.Context())
		over <- released && err == nil
	}()
	if down, err := c.Next(t.Context()); !down || err != nil {
		t.Fatal(down, err)
	}
	if down, err := c.ShuttingDown(t.Context()); !down || err != nil {
		t.Error(down, err)
	}
	if _, err := c.Inhibit(t.Context(), "minik8sd", "too late"); err == nil {
		t.Error("a lock is given during a shutdown")
	}
	select {
	case <-over:
		t.Fatal("the shutdown has not waited")
	default:
	}
	if err := lock.Close(); err != nil {
		t.Error(err)
	}
	if !<-over {
		t.Error("the lock counts after it was released")
	}
	if err := l.Announce(false); err != nil {
		t.Fatal(err)
	}
	if down, err := c.Next(t.Context()); down || err != nil {
		t.Error("after a shutdown that was cancelled:", down, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Next(t.Context()); err == nil {
		t.Error("the end of the bus is no error")
	}
}

// More time is asked for by a file that only its owner replaces, and of several wishes the largest counts.
func TestRaiseMaxDelay(t *testing.T) {
	l := bus(t, 5*time.Second)
	for _, step := range []struct {
		owner      string
		wish, want time.Duration
		files      int
	}{
		{"one", 4 * time.Second, 5 * time.Second, 0},
		{"one", 20 * time.Second, 20 * time.Second, 1},
		{"two", 10 * time.Second, 20 * time.Second, 1},
		{"two", 30500 * time.Millisecond, 31 * time.Second, 2},
		{"one", 120 * time.Second, 120 * time.Second, 2},
	} {
		c, err := open(t.Context(), step.owner, l.DropIns)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.RaiseMaxDelay(t.Context(), step.wish)
		c.Close()
		files, gerr := filepath.Glob(filepath.Join(l.DropIns, "*"))
		if err != nil || gerr != nil || got != step.want || len(files) != step.files {
			t.Errorf("%s asks for %s and gets %s, %v; files %q", step.owner, step.wish, got, err, files)
		}
	}
	// The administrator's own file comes last.
	if err := os.WriteFile(filepath.Join(l.DropIns, "99-z.conf"), []byte("[Login]\nInhibitDelayMaxSec=7\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := open(t.Context(), "one", l.DropIns)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got, err := c.RaiseMaxDelay(t.Context(), 200*time.Second); err != nil || got != 7*time.Second {
		t.Errorf("against the administrator: %s, %v", got, err)
	}
	// What is given back is the owner's alone.
	if err := os.Remove(filepath.Join(l.DropIns, "99-z.conf")); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		owner string
		want  time.Duration
	}{{"one", 31 * time.Second}, {"one", 31 * time.Second}, {"two", 5 * time.Second}} {
		err := forget(t.Context(), l.DropIns, step.owner)
		if got, derr := c.MaxDelay(t.Context()); err != nil || derr != nil || got != step.want {
			t.Errorf("%s gives back what it has asked for: %s, %v, %v", step.owner, got, err, derr)
		}
	}
	if left, err := filepath.Glob(filepath.Join(l.DropIns, "*")); err != nil || len(left) != 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}

func TestNoLogind(t *testing.T) {
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", logindtest.AddressIn(t.TempDir()))
	if _, err := Open(t.Context(), "test"); !errors.Is(err, ErrNone) {
		t.Errorf("without a bus: %v", err)
	}
}
