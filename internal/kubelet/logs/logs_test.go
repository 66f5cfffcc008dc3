package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// entry is the n-th record, at second n.
func entry(n int, text string) string {
	return fmt.Sprintf("2025-01-01T00:00:%02d.000000000Z stdout F %s\n", n, text)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string, opts Options) string {
	t.Helper()
	var b strings.Builder
	if err := Read(t.Context(), nil, path, opts, nil, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	write(t, path+".20250101-000000.000000", entry(1, "one")+entry(2, "two"))
	write(t, path+".20250101-000001.000000", entry(3, "three")+"torn by a crash\n")
	write(t, path, entry(4, "four")+"2025-01-01T00:00:05Z stderr P fi\n2025-01-01T00:00:06Z stderr F ve\n2025-01-01T00:00:07Z stdout F\n")
	all := Options{Tail: -1, Limit: -1}
	for _, c := range []struct {
		name string
		set  func(*Options)
		want string
	}{
		{"all", func(*Options) {}, "one\ntwo\nthree\nfour\nfive\n\n"},
		{"none", func(o *Options) { o.Tail = 0 }, ""},
		{"tail in the newest", func(o *Options) { o.Tail = 4 }, "four\nfive\n\n"},
		{"tail across parts", func(o *Options) { o.Tail = 7 }, "two\nthree\nfour\nfive\n\n"},
		{"tail of more than there is", func(o *Options) { o.Tail = 100 }, "one\ntwo\nthree\nfour\nfive\n\n"},
		{"since", func(o *Options) { o.Since = time.Date(2025, 1, 1, 0, 0, 4, 0, time.UTC) }, "four\nfive\n\n"},
		{"limit", func(o *Options) { o.Limit = 6 }, "one\ntw"},
		{"one stream", func(o *Options) { o.Stream = "stderr" }, "five\n"},
		{"time stamps", func(o *Options) { o.Timestamps, o.Tail = true, 4 },
			"2025-01-01T00:00:04.000000000Z four\n2025-01-01T00:00:05Z five\n2025-01-01T00:00:07Z \n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := all
			c.set(&o)
			if got := read(t, path, o); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	if tail, err := Tail(t.Context(), path, 80, 3); err != nil || tail != "e\n\n" {
		t.Errorf("%q, %v", tail, err)
	}
}

func TestLongLinesAndTailOverBlocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	long := strings.Repeat("x", 3*blockSize)
	write(t, path, entry(1, "first")+entry(2, long)+entry(3, "last"))
	if got := read(t, path, Options{Tail: 2, Limit: -1}); got != long+"\nlast\n" {
		t.Errorf("%d bytes", len(got))
	}
}

func TestNoLog(t *testing.T) {
	err := Read(t.Context(), nil, filepath.Join(t.TempDir(), "0.log"), Options{}, nil, io.Discard)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// follower reads lines from a log that is followed.
type following struct {
	t    *testing.T
	r    *io.PipeReader
	done chan error
}

func follow(t *testing.T, ctx context.Context, hub *Hub, path string, tail int64, exited <-chan struct{}) *following {
	r, w := io.Pipe()
	f := &following{t: t, r: r, done: make(chan error, 1)}
	go func() {
		err := Read(ctx, hub, path, Options{Follow: true, Tail: tail, Limit: -1}, exited, w)
		w.CloseWithError(err)
		f.done <- err
	}()
	return f
}

func (f *following) expect(want string) {
	f.t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(f.r, got); err != nil || string(got) != want {
		f.t.Fatalf("%q, %v, want %q", got, err, want)
	}
}

func TestFollowOverRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	write(t, path, entry(1, "one"))
	var hub Hub
	exited := make(chan struct{})
	f := follow(t, t.Context(), &hub, path, -1, exited)
	f.expect("one\n")
	write(t, path, entry(2, "two"))
	f.expect("two\n")
	write(t, path, entry(3, "three")[:20])
	write(t, path, entry(3, "three")[20:])
	if err := os.Rename(path, path+".20250101-000000.000000"); err != nil {
		t.Fatal(err)
	}
	write(t, path, entry(4, "four"))
	f.expect("three\nfour\n")
	// Two rotations at once.
	for i, name := range []string{".20250101-000001.000000", ".20250101-000002.000000"} {
		write(t, path, entry(5+i, "more"))
		if err := os.Rename(path, path+name); err != nil {
			t.Fatal(err)
		}
	}
	write(t, path, entry(7, "end"))
	f.expect("more\nmore\nend\n")
	write(t, path, entry(8, "last words"))
	close(exited)
	f.expect("last words\n")
	if err := <-f.done; err != nil {
		t.Error(err)
	}
	hub.mu.Lock()
	defer hub.mu.Unlock()
	if hub.watcher != nil || len(hub.dirs) > 0 {
		t.Error("the hub still watches")
	}
}

func TestFollowersShareTheHub(t *testing.T) {
	dir := t.TempDir()
	var hub Hub
	ctx, cancel := context.WithCancel(t.Context())
	var all []*following
	for i := range 20 {
		path := filepath.Join(dir, fmt.Sprint(i%2), "0.log")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if i < 2 {
			write(t, path, entry(1, "one"))
		}
		all = append(all, follow(t, ctx, &hub, path, -1, nil))
	}
	for _, f := range all {
		f.expect("one\n")
	}
	for i := range 2 {
		write(t, filepath.Join(dir, fmt.Sprint(i), "0.log"), entry(2, "two"))
	}
	for _, f := range all {
		f.expect("two\n")
	}
	cancel()
	for _, f := range all {
		if err := <-f.done; err != nil {
			t.Error(err)
		}
	}
}
