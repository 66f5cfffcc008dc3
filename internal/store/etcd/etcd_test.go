package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"minik8s/internal/store"
	"minik8s/internal/store/etcd"
	"minik8s/internal/store/storetest"
)

func open(t *testing.T, cfg etcd.Config) *etcd.Store {
	t.Helper()
	cfg.Log = slog.New(slog.DiscardHandler)
	s, err := etcd.Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		s := open(t, etcd.Config{Dir: t.TempDir()})
		t.Cleanup(func() { s.Close() })
		return s
	})
}

func TestReopenKeepsEverything(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	s := open(t, etcd.Config{Dir: dir})
	rev, err := s.Write(ctx, store.Create("/a", []byte("kept")))
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	s = open(t, etcd.Config{Dir: dir})
	defer s.Close()
	kv, err := s.Get(ctx, "/a")
	if err != nil || string(kv.Value) != "kept" || kv.Modified != rev {
		t.Fatalf("after reopening: %+v, %v", kv, err)
	}
}

// A full store refuses writes with ErrNoSpace, still deletes, and writes again once it was emptied.
func TestQuota(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	s := open(t, etcd.Config{Dir: t.TempDir(), Quota: 4 << 20})
	defer s.Close()
	revs := map[string]int64{}
	var err error
	for i := 0; err == nil; i++ { // the size is known at each commit of a batch, not at each write
		key := fmt.Sprintf("/%d", i)
		var rev int64
		if rev, err = s.Write(ctx, store.Create(key, make([]byte, 100<<10))); err == nil {
			revs[key] = rev
		}
		if i > 5000 {
			t.Fatal("no quota was felt")
		}
	}
	if !errors.Is(err, store.ErrNoSpace) {
		t.Fatalf("refused with %v", err)
	}
	for key, rev := range revs {
		if _, err := s.Write(ctx, store.Delete(key, rev)); err != nil {
			t.Fatalf("a full store does not delete: %v", err)
		}
	}
	for {
		_, err := s.Write(ctx, store.Create("/after", nil))
		if err == nil || errors.Is(err, store.ErrExists) {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("still refused: %v", err)
		}
		select { // housekeeping has its own pace
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// History goes by its age too: a store that is hardly written to does not keep it for ever.
func TestHistoryAges(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	s := open(t, etcd.Config{Dir: t.TempDir(), CompactEvery: 50 * time.Millisecond})
	defer s.Close()
	rev, err := s.Write(ctx, store.Create("/a", []byte("1")))
	if err != nil {
		t.Fatal(err)
	}
	if rev, err = s.Write(ctx, store.Update("/a", []byte("2"), rev)); err != nil {
		t.Fatal(err)
	}
	for s.Compacted() < rev {
		select { // housekeeping has its own pace
		case <-ctx.Done():
			t.Fatal("the history stays")
		case <-time.After(10 * time.Millisecond):
		}
	}
	if _, err := s.List(ctx, "/", "", 0, rev-1); !errors.Is(err, store.ErrCompacted) {
		t.Errorf("an old page: %v", err)
	}
	if kv, err := s.Get(ctx, "/a"); err != nil || string(kv.Value) != "2" {
		t.Errorf("%+v, %v", kv, err)
	}
}

func TestUnusableDirectory(t *testing.T) {
	file := t.TempDir() + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := etcd.Open(context.Background(), etcd.Config{Dir: file + "/etcd", Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err == nil {
		t.Fatal("opened a directory below a file")
	}
}
