package containerd

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A leftover of an earlier run that cannot be removed does not prevent the start, and is removed later.
func TestLeftoverThatIsBusy(t *testing.T) {
	b := newBench(t)
	b.up("stays", "sleep", "1000") // or there is nothing left after a stop
	dir := b.containerDir("0123456789abcdef")
	inside := filepath.Join(dir, "busy")
	if err := os.MkdirAll(inside, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", inside, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(inside, unix.MNT_DETACH) }) //nolint:errcheck // it was unmounted below
	b.restart()
	if id := b.up("after", "true"); b.waitExit(id).ExitCode != 0 {
		t.Error("no pod runs")
	}
	if _, err := os.Stat(inside); err != nil {
		t.Fatalf("it was not busy: %v", err)
	}
	if err := unix.Unmount(inside, 0); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the leftover gone", func() error {
		if _, err := os.Stat(dir); err == nil {
			return fmt.Errorf("%s is still there", dir)
		}
		return nil
	})
}
