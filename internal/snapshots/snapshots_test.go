package snapshots

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// fake is a store whose content is its revision.
type fake struct {
	revision, size, spare int64
	fails                 error
}

func (f *fake) Revision(context.Context) (int64, error) { return f.revision, nil }
func (f *fake) Size() (total, used int64)               { return f.size, f.size }
func (f *fake) Spare() int64                            { return f.spare }
func (f *fake) Save(_ context.Context, w io.Writer) error {
	if _, err := w.Write([]byte("content")); err != nil {
		return err
	}
	return f.fails
}

func TestTake(t *testing.T) {
	store, now := &fake{revision: 5, size: 100, spare: 1000}, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := Config{Store: store, Dir: t.TempDir(), Every: time.Hour, Keep: 3, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)}
	if err := os.WriteFile(filepath.Join(c.Dir, "mine.db"), nil, 0o644); err != nil { // somebody's, which stays
		t.Fatal(err)
	}
	take := func(want error, names ...string) {
		t.Helper()
		if err := c.take(t.Context()); !errors.Is(err, want) && (want == nil || err == nil) {
			t.Errorf("%v", err)
		}
		var got []string
		entries, _ := os.ReadDir(c.Dir)
		for _, e := range entries {
			if e.Name() == "mine.db" {
				continue
			}
			got = append(got, e.Name())
			if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v", e.Name(), info.Mode(), err)
			}
		}
		if !slices.Equal(got, names) {
			t.Errorf("there are %v, want %v", got, names)
		}
	}
	take(nil, "20260102T030405Z-5.db")
	now = now.Add(time.Hour)
	take(nil, "20260102T030405Z-5.db") // nothing has changed
	store.revision, store.spare = 6, 99
	take(errors.New("nearly full"), "20260102T030405Z-5.db")
	store.spare, store.fails = 1000, io.ErrShortWrite
	take(io.ErrShortWrite, "20260102T030405Z-5.db")
	store.fails = nil
	take(nil, "20260102T030405Z-5.db", "20260102T040405Z-6.db")
	for range 3 {
		now = now.Add(time.Hour)
		store.revision++
		if err := c.take(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	take(nil, "20260102T050405Z-7.db", "20260102T060405Z-8.db", "20260102T070405Z-9.db")

	for _, x := range []struct {
		after, want time.Duration
	}{{0, time.Hour}, {40 * time.Minute, 20 * time.Minute}, {3 * time.Hour, 0}, {-5 * time.Hour, time.Hour}} {
		c.Now = func() time.Time { return now.Add(x.after) }
		if got, err := c.wait(); err != nil || got != x.want {
			t.Errorf("%s after the last: %s, %v; want %s", x.after, got, err, x.want)
		}
	}
}

// It goes on from one to the next, and removes what a kill has left half written.
func TestRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "snapshots")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	half := filepath.Join(dir, ".new-123")
	if err := os.WriteFile(half, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	store, taken := &fake{size: 1, spare: 2}, make(chan struct{})
	ended := make(chan error)
	go func() {
		ended <- Run(ctx, Config{Store: counting{store, taken}, Dir: dir, Every: time.Millisecond, Keep: 2, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	}()
	for range 3 {
		<-taken
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(half); !os.IsNotExist(err) {
		t.Error(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Error(info.Mode(), err)
	}
}

// counting says each time that it is asked for its revision, which is another one then.
type counting struct {
	*fake
	asked chan struct{}
}

func (c counting) Revision(ctx context.Context) (int64, error) {
	select {
	case c.asked <- struct{}{}:
	case <-ctx.Done():
	}
	c.revision++
	return c.revision, ctx.Err()
}
