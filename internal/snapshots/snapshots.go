package snapshots

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"minik8s/internal/disk"
)

// Store is what is copied.
type Store interface {
	Revision(ctx context.Context) (int64, error)
	// Size is that of the store's file, in bytes, and Spare how many bytes of its disk may be used for something else.
	Size() (total, used int64)
	Spare() int64
	Save(ctx context.Context, w io.Writer) error
}

// Config says what to copy, and how often.
type Config struct {
	Store Store
	Dir   string
	// Every is the time between two copies, and Keep how many there are at most.
	Every time.Duration
	Keep  int
	Now   func() time.Time
	Log   *slog.Logger
}

// file is a copy.
type file struct {
	name     string
	at       time.Time
	revision int64
}

// stamp is how a copy's name begins; then follow its revision and its ending.
const (
	stamp  = "20060102T150405Z"
	ending = ".db"
)

func nameOf(at time.Time, revision int64) string {
	return at.UTC().Format(stamp) + "-" + strconv.FormatInt(revision, 10) + ending
}

func parse(name string) (file, bool) {
	base, ok := strings.CutSuffix(name, ending)
	at, rev, cut := strings.Cut(base, "-")
	t, terr := time.Parse(stamp, at)
	n, nerr := strconv.ParseInt(rev, 10, 64)
	return file{name, t, n}, ok && cut && terr == nil && nerr == nil
}

// Run makes copies until ctx ends. Those that fail are logged, and tried again after the next interval.
func Run(ctx context.Context, cfg Config) error {
	if err := disk.Private(cfg.Dir, 0o700); err != nil {
		return err
	}
	left, err := filepath.Glob(filepath.Join(cfg.Dir, ".new-*")) // of a run that was killed
	if err != nil {
		return err
	}
	for _, path := range left {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	wait, err := cfg.wait()
	if err != nil {
		return err
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil
		}
		if err := cfg.take(ctx); err != nil && ctx.Err() == nil {
			cfg.Log.Warn("no copy of the store was saved", "dir", cfg.Dir, "error", err, "again in", cfg.Every)
		}
		t.Reset(cfg.Every)
	}
}

// wait is how long it is until the next copy is due, as the last one's name says. Without one it counts from when the
// directory was made. A clock that was set back does not make it longer.
func (c Config) wait() (time.Duration, error) {
	files, err := c.files()
	if err != nil {
		return 0, err
	}
	info, err := os.Stat(c.Dir)
	if err != nil {
		return 0, err
	}
	last := info.ModTime()
	if len(files) > 0 {
		last = files[len(files)-1].at
	}
	return max(0, min(c.Every, c.Every-c.Now().Sub(last))), nil
}

// files are the copies, the oldest first.
func (c Config) files() ([]file, error) {
	entries, err := os.ReadDir(c.Dir)
	var out []file
	for _, e := range entries {
		if f, ok := parse(e.Name()); ok && e.Type().IsRegular() {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b file) int { return a.at.Compare(b.at) })
	return out, err
}

// take makes a copy, if there is something new, and removes those that are too many.
func (c Config) take(ctx context.Context) error {
	files, err := c.files()
	if err != nil {
		return err
	}
	revision, err := c.Store.Revision(ctx)
	if err != nil {
		return err
	}
	if len(files) > 0 && files[len(files)-1].revision == revision {
		return nil
	}
	if size, _ := c.Store.Size(); c.Store.Spare() < size {
		return fmt.Errorf("it would have %d MiB, and the disk is nearly full", size>>20)
	}
	name := nameOf(c.Now(), revision)
	err = disk.Create(filepath.Join(c.Dir, name), 0o600, func(w io.Writer) error { return c.Store.Save(ctx, w) })
	if err != nil {
		return err
	}
	c.Log.Info("a copy of the store was saved", "file", name)
	files = slices.DeleteFunc(files, func(f file) bool { return f.name == name })
	for _, old := range files[:max(0, len(files)+1-c.Keep)] {
		if rerr := os.Remove(filepath.Join(c.Dir, old.name)); rerr != nil && !os.IsNotExist(rerr) {
			err = rerr
		}
	}
	return err
}
