package kubelet

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// told hands on each line of a log that has a text.
type told struct {
	text string
	line chan string
}

func (w told) Write(p []byte) (int, error) {
	if strings.Contains(string(p), w.text) {
		select {
		case w.line <- string(p):
		default:
		}
	}
	return len(p), nil
}

// What is left of a pod that is gone, and is busy when the kubelet starts, does not wait for the next start.
func TestBusyLeftoverOfAPod(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: it mounts")
	}
	b := newBed(t)
	busy := told{"trying again", make(chan string, 1)}
	b.cfg.Log = slog.New(slog.NewTextHandler(busy, nil))
	dir := filepath.Join(b.cfg.DataDir, "pods-logs", "default_old_6b0f3a7e-0000-0000-0000-000000000000")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) }) //nolint:errcheck // mostly it is gone
	b.start()
	select {
	case line := <-busy.line:
		if !strings.Contains(line, dir) {
			t.Error(line)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("nothing is said about a directory that is busy")
	}
	if err := syscall.Unmount(dir, 0); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			break
		}
		if time.Now().After(until) {
			t.Fatal("it is still there")
		}
	}
}
