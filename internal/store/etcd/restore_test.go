package etcd_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"minik8s/internal/store"
	"minik8s/internal/store/etcd"
	"minik8s/internal/store/etcd/recovery"
)

var quiet = slog.New(slog.DiscardHandler)

func fill(t *testing.T, s *etcd.Store, from, to int) (last int64) {
	t.Helper()
	var g errgroup.Group
	g.SetLimit(64)
	for i := from; i < to; i++ {
		g.Go(func() error {
			_, err := s.Write(t.Context(), store.Create(fmt.Sprintf("/%04d", i), []byte("value")))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	last, err := s.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return last
}

// joins is a configuration with which a member joins another one.
func joins(first *etcd.Store, cfg etcd.Config) etcd.Config {
	cfg.Join = func(ctx context.Context) ([]string, error) { return first.Admit(ctx, cfg.Name, cfg.Peers.Address) }
	return cfg
}

func count(t *testing.T, s *etcd.Store) int {
	t.Helper()
	page, err := s.List(t.Context(), "/", "", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return len(page.KVs)
}

func snapshot(t *testing.T, s *etcd.Store, to string) (revision int64) {
	t.Helper()
	snap, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	n, err := snap.WriteTo(&b)
	if err = errors.Join(err, snap.Close()); err != nil || n != snap.Size || int64(b.Len()) != n {
		t.Fatalf("%d bytes of %d (said: %d): %v", b.Len(), snap.Size, n, err)
	}
	if err := os.WriteFile(to, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return snap.Revision
}

// alone opens what was restored. No revision that was ever seen comes again, and who watches on from one is told that
// the history is gone.
func alone(t *testing.T, dir string, seen int64, want int) *etcd.Store {
	t.Helper()
	s := open(t, etcd.Config{Dir: dir, Log: quiet})
	if n := count(t, s); n != want {
		t.Errorf("%d keys are there, want %d", n, want)
	}
	w, err := s.Watch(t.Context(), "/", seen)
	if err != nil && !errors.Is(err, store.ErrCompacted) {
		t.Fatal(err)
	}
	if err == nil {
		for range w.Batches() { //nolint:revive // until it ends
		}
		if !errors.Is(w.Err(), store.ErrCompacted) {
			t.Errorf("a watch from before ends with %v", w.Err())
		}
	}
	if rev, err := s.Write(t.Context(), store.Create("/after", nil)); err != nil || rev <= seen {
		t.Errorf("written at %d after %d: %v", rev, seen, err)
	}
	return s
}

func TestRestore(t *testing.T) {
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "snapshot")
	s := open(t, etcd.Config{Dir: dir, Log: quiet})
	fill(t, s, 0, 100)
	revision := snapshot(t, s, file)
	seen := fill(t, s, 100, 150)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := recovery.Restore(dir, file, false, quiet); !errors.Is(err, recovery.ErrPresent) {
		t.Errorf("over what is there: %v", err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	for name, content := range map[string][]byte{"cut": whole[:len(whole)/2], "without the end": whole[:len(whole)-32], "flipped": flipped,
		"empty": nil, "text": []byte(strings.Repeat("no snapshot\n", 1000))} {
		bad := filepath.Join(t.TempDir(), "bad")
		if err := os.WriteFile(bad, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := recovery.Restore(dir, bad, true, quiet); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s = open(t, etcd.Config{Dir: dir, Log: quiet}) // what was refused has changed nothing
	if n := count(t, s); n != 150 {
		t.Errorf("%d keys", n)
	}
	s.Close()
	if left, _ := filepath.Glob(filepath.Join(dir, "replaced-*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}

	r, err := recovery.Restore(dir, file, true, quiet)
	if err != nil || r.Revision != revision || r.Aside == "" {
		t.Fatalf("%+v, %v; the snapshot is of %d", r, err, revision)
	}
	alone(t, dir, seen, 100).Close()
	old := open(t, etcd.Config{Dir: r.Aside, Log: quiet}) // what was kept beside is whole
	if n := count(t, old); n != 150 {
		t.Errorf("beside are %d keys", n)
	}
	old.Close()
	fresh := filepath.Join(t.TempDir(), "etcd")
	if r, err := recovery.Restore(fresh, file, false, quiet); err != nil || r.Aside != "" {
		t.Fatalf("%+v, %v", r, err)
	}
	alone(t, fresh, seen, 100).Close()
}

// One of two members is lost that alone voted: the other one has all, and goes on alone after Recover.
func TestRecoverALearner(t *testing.T) {
	c := newCluster(t)
	a := open(t, c.config("a"))
	fill(t, a, 0, 300)
	cfg := c.config("b")
	b := open(t, joins(a, cfg))
	await(t, b, "a learner beside a voter", voters(1))
	seen := fill(t, a, 300, 310)
	if n := count(t, b); n != 310 {
		t.Fatalf("the learner has %d keys", n)
	}
	if _, err := b.Write(t.Context(), store.Create("/by-b", nil)); err != nil {
		t.Fatal(err)
	}
	a.Halt()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := b.Get(ctx, "/0001"); err == nil {
		t.Error("it is read without a majority")
	}
	b.Halt()
	r, err := recovery.Recover(t.Context(), cfg.Dir, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if r.Aside == "" {
		t.Errorf("%+v", r)
	}
	for _, gone := range []string{"peers", "recovering"} {
		if _, err := os.Stat(filepath.Join(cfg.Dir, gone)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", gone, err)
		}
	}
	s := alone(t, cfg.Dir, seen+1, 311)
	s.Close()
	// Others join it.
	b = c.open(cfg)
	d := c.open(c.config("d"))
	await(t, b, "a voter and a learner", func(m []etcd.Member) bool { return len(m) == 2 && voters(1)(m) && m[1].Name == "d" })
	if n := count(t, d); n != 312 {
		t.Errorf("who has joined has %d keys", n)
	}
	if _, err := recovery.Recover(t.Context(), t.TempDir(), quiet); err == nil {
		t.Error("recovered out of nothing")
	}
}

// Two of three voters are lost: what the last one has is all there, also what the others had not agreed to, and twice if
// need be.
func TestRecoverAVoter(t *testing.T) {
	c := newCluster(t)
	cfg := c.config("a")
	a := open(t, cfg)
	b, d := open(t, joins(a, c.config("b"))), open(t, joins(a, c.config("d")))
	await(t, a, "three voters", voters(3))
	seen := fill(t, b, 0, 2500) // more than one of Raft's snapshots
	b.Halt()
	d.Halt()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond) // while it still leads
	defer cancel()
	if _, err := a.Write(ctx, store.Create("/unanswered", nil)); err == nil {
		t.Fatal("written without a majority")
	}
	a.Halt()
	for range 2 {
		if _, err := recovery.Recover(t.Context(), cfg.Dir, quiet); err != nil {
			t.Fatal(err)
		}
	}
	s := alone(t, cfg.Dir, seen, 2501)
	if _, err := s.Get(t.Context(), "/unanswered"); err != nil {
		t.Errorf("what may have been acknowledged is lost: %v", err)
	}
	s.Close()
}
