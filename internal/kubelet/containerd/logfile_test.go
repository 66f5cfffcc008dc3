package containerd

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"minik8s/internal/kubelet/logs"
)

func testLog(t *testing.T, dir string, size int64, files int) *logFile {
	t.Helper()
	l, err := openLog(filepath.Join(dir, "0.log"), size, files, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	return l
}

// logSize is what a log takes in all.
func logSize(t *testing.T, l *logFile) (n int64) {
	t.Helper()
	names, err := filepath.Glob(l.path + "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if st, err := os.Stat(name); err == nil {
			n += st.Size()
		}
	}
	return n
}

func readLog(t *testing.T, l *logFile) string {
	t.Helper()
	var b strings.Builder
	if err := logs.Read(t.Context(), nil, l.path, logs.Options{Tail: -1, Limit: -1}, nil, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// One line without an end takes no more of the disk than many.
func TestAnEndlessLineIsRotated(t *testing.T) {
	l := testLog(t, t.TempDir(), 100<<10, 3)
	out := &lines{stream: "stdout", to: l}
	for range 1000 {
		out.feed(bytes.Repeat([]byte("x"), 4<<10))
	}
	out.feed([]byte("\nand another\nlast"))
	out.end()
	if n := logSize(t, l); n > 3*(100+17)<<10 {
		t.Errorf("4 MB in one line take %d bytes", n)
	}
	got := readLog(t, l)
	if !strings.HasSuffix(got, "x\nand another\nlast") || strings.Count(got, "\n") != 2 || len(got) < 200<<10 {
		t.Errorf("%d bytes that end in %q", len(got), got[max(0, len(got)-40):])
	}
}

// A log that cannot be moved aside is bounded nevertheless, and goes on as soon as it can.
func TestALogThatCannotBeRotated(t *testing.T) {
	l := testLog(t, t.TempDir(), 10<<10, 3)
	tries := 0
	l.rename = func(from, to string) error { tries++; return errors.New("not now") }
	for i := range 1000 {
		l.write("stdout", false, fmt.Appendf(nil, "%d %s", i, strings.Repeat("y", 100)))
	}
	if n := logSize(t, l); n > 21<<10 || tries == 0 {
		t.Errorf("%d bytes after %d tries", n, tries)
	}
	if got := readLog(t, l); !strings.Contains(got, "\n999 ") {
		t.Errorf("the end is missing: %q", got[max(0, len(got)-40):])
	}
	l.rename = os.Rename
	for i := range 1000 {
		l.write("stdout", false, fmt.Appendf(nil, "%d %s", 1000+i, strings.Repeat("y", 100)))
	}
	if files, err := filepath.Glob(l.path + "*"); err != nil || len(files) != 3 {
		t.Errorf("%v, %v", files, err)
	}
	if got := readLog(t, l); !strings.Contains(got, "\n1999 ") {
		t.Errorf("the end is missing: %q", got[max(0, len(got)-40):])
	}
	// Nor does it matter that somebody removes it.
	if err := os.Remove(l.path); err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		l.write("stdout", false, fmt.Appendf(nil, "%d %s", 2000+i, strings.Repeat("y", 100)))
	}
	if got := readLog(t, l); !strings.Contains(got, "\n2199 ") {
		t.Errorf("the end is missing: %q", got[max(0, len(got)-40):])
	}
}

// What a full disk does not take is written when there is room again, in whole entries, whether more output
// comes or not.
func TestALogOnAFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a small disk needs root")
	}
	dir := t.TempDir()
	if err := unix.Mount("small", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	l := testLog(t, dir, 1<<20, 3)
	fill, want := filepath.Join(dir, "fill"), ""
	write := func(from, to int) {
		for i := from; i < to; i++ {
			text := fmt.Sprintf("%d %s", i, strings.Repeat("z", 100))
			l.write("stdout", false, []byte(text))
			want += text + "\n"
		}
	}
	write(0, 10)
	if err := os.WriteFile(fill, make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	write(10, 150)
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	eventually(t, "what was held is written without more output", func() error {
		if got := readLog(t, l); got != want {
			return fmt.Errorf("%d of %d bytes", len(got), len(want))
		}
		return nil
	})
	write(150, 160)
	if got := readLog(t, l); got != want {
		t.Errorf("%d of %d bytes", len(got), len(want))
	}

	// What is more than can be held is lost, the rest is not, and the container never waits.
	if err := os.WriteFile(fill, make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	for range 200 {
		l.write("stderr", false, bytes.Repeat([]byte("w"), maxLine))
	}
	if l.lost == 0 || len(l.pending) > maxPending {
		t.Errorf("%d bytes lost, %d pending", l.lost, len(l.pending))
	}
}
