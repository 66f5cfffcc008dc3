package stdio

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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
	// What was held is written without more output.
	for deadline := time.Now().Add(20 * time.Second); readLog(t, l) != want; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d bytes in time", len(readLog(t, l)), len(want))
		}
	}
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
	if l.dropped == 0 || len(l.pending) > maxPending {
		t.Errorf("%d bytes lost, %d pending", l.dropped, len(l.pending))
	}
}

func TestLogFormatAndRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	l, err := openLog(path, 0, 5, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	out := &lines{stream: "stdout", to: l}
	long := strings.Repeat("x", maxLine)
	// In pieces of every size, the result is the same.
	text := "one\n\n" + long + "\n" + long + "y\n" + long + long + "\nlast"
	for len(text) > 0 {
		n := min(len(text), 1000)
		out.feed([]byte(text[:n]))
		text = text[n:]
	}
	out.end()
	l.close()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(data)) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 4)
		if len(f) != 4 || len(f[0]) != len("2016-10-06T00:17:09.669794202Z") || f[1] != "stdout" {
			t.Fatalf("not the format: %.80q", line)
		}
		got = append(got, f[2]+" "+strings.ReplaceAll(f[3], long, "LONG"))
	}
	want := []string{"F one", "F ", "F LONG", "P LONG", "F y", "P LONG", "F LONG", "P last"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}

	l, err = openLog(path, 1000, 3, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		l.write("stderr", false, fmt.Appendf(nil, "line %d", i))
	}
	l.close()
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) != 3 {
		t.Errorf("after rotation there are %v, %v; want 3", files, err)
	}
	if st, err := os.Stat(path); err != nil || st.Size() > 1000 {
		t.Errorf("the current one: %v, %v", st, err)
	}
}
