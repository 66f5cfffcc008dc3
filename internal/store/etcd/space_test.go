package etcd_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"minik8s/internal/store"
	"minik8s/internal/store/etcd"
)

// smallDisk is a file system of 160 MiB of the test's own.
func smallDisk(t *testing.T, kind string) string {
	t.Helper()
	if os.Geteuid() != 0 || testing.Short() {
		t.Skip("a disk of its own needs root")
	}
	dir := t.TempDir()
	switch kind {
	case "tmpfs":
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=160m"); err != nil {
			t.Fatal(err)
		}
	case "ext4":
		image := filepath.Join(t.TempDir(), "disk")
		if err := os.WriteFile(image, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(image, 160<<20); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"mkfs.ext4", "-q", "-m", "0", image}, {"mount", "-o", "loop", image, dir}} {
			if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
				t.Skipf("%v: %v: %s", args, err, out)
			}
		}
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) }) //nolint:errcheck // it was mounted
	return dir
}

// hog fills all that is left of a disk.
func hog(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size >= 512; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			if !errors.Is(err, unix.ENOSPC) {
				t.Fatal(err)
			}
			size /= 2
		}
	}
}

// Clients write until the disk is full, and somebody else takes the rest of it. The store goes on: it says so,
// is read, deletes, and writes again when there is room. Nothing that was acknowledged is lost, nothing
// that was refused is there.
func TestFullDisk(t *testing.T) {
	for _, kind := range []string{"tmpfs", "ext4"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
			defer cancel()
			disk := smallDisk(t, kind)
			dir := filepath.Join(disk, "etcd")
			s := open(t, etcd.Config{Dir: dir})
			value := bytes.Repeat([]byte("v"), 64<<10)
			kept := map[string]int64{}
			if _, err := s.Write(ctx, store.Create("/beat", nil)); err != nil {
				t.Fatal(err)
			}
			var mu sync.Mutex
			var wg sync.WaitGroup
			for w := range 8 {
				wg.Go(func() {
					for i := 0; ; i++ {
						key := fmt.Sprintf("/%d/%d", w, i)
						rev, err := s.Write(ctx, store.Create(key, value))
						if errors.Is(err, store.ErrNoSpace) {
							return
						}
						if err != nil {
							t.Errorf("%s: %v", key, err)
							return
						}
						mu.Lock()
						kept[key] = rev
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			t.Logf("full after %d", len(kept))
			file := filepath.Join(disk, "hog")
			hog(t, file)
			held := func() {
				t.Helper()
				page, err := s.List(ctx, "/", "", 0, 0)
				if err != nil || len(page.KVs) != len(kept)+1 {
					t.Fatalf("%d of %d are there, %v", len(page.KVs), len(kept)+1, err)
				}
				for _, kv := range page.KVs {
					if kv.Key != "/beat" && kv.Modified != kept[kv.Key] {
						t.Fatalf("%s was acknowledged at %d and is of %d", kv.Key, kept[kv.Key], kv.Modified)
					}
				}
			}
			held()
			if _, err := s.Write(ctx, store.Create("/refused", []byte("x"))); !errors.Is(err, store.ErrNoSpace) {
				t.Errorf("on a disk without a free byte: %v", err)
			}
			beat, err := s.Get(ctx, "/beat")
			if err != nil {
				t.Fatal(err)
			}
			for range 20 {
				if beat.Modified, err = s.Write(store.Essential(ctx), store.Update("/beat", []byte("alive"), beat.Modified)); err != nil {
					t.Fatalf("a heartbeat: %v", err)
				}
			}
			keys := slices.Sorted(maps.Keys(kept))
			for _, key := range keys[:len(keys)/2] {
				if _, err := s.Write(ctx, store.Delete(key, kept[key])); err != nil {
					t.Fatalf("a full disk does not delete: %v", err)
				}
				delete(kept, key)
			}
			held()
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			for n := 0; ; n++ { // it needs only space, which housekeeping makes
				_, err := s.Write(ctx, store.Create(fmt.Sprintf("/again/%d", n), value))
				if err == nil {
					break
				}
				if !errors.Is(err, store.ErrNoSpace) {
					t.Fatal(err)
				}
				select {
				case err := <-s.Err():
					t.Fatalf("it ended: %v", err)
				case <-ctx.Done():
					t.Fatal("it never writes again")
				case <-time.After(10 * time.Millisecond):
				}
			}
			s.Close()
			hog(t, file)
			s = open(t, etcd.Config{Dir: dir}) // a full disk does not prevent a start
			defer s.Close()
			page, err := s.List(ctx, "/again/", "", 0, 0)
			if err != nil || len(page.KVs) != 1 {
				t.Fatalf("%d of what was written then, %v", len(page.KVs), err)
			}
			kept[page.KVs[0].Key] = page.KVs[0].Modified
			held()
		})
	}
}

// logged is a log that says when a message has been written to it.
type logged struct {
	slog.Handler
	message string
	seen    chan struct{}
}

func (l *logged) Enabled(context.Context, slog.Level) bool { return true }

func (l *logged) Handle(_ context.Context, r slog.Record) error {
	if r.Message == l.message {
		select {
		case l.seen <- struct{}{}:
		default:
		}
	}
	return nil
}

// On a full disk somebody still reads an old state, so that every change makes the file grow, and by the megabytes of its
// neighbours. The store stops before it meets the end of what is allocated, and goes on when the reader is done.
func TestFullDiskWhileAnOldStateIsRead(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	disk := smallDisk(t, "tmpfs")
	log := &logged{Handler: slog.DiscardHandler, message: "could not compact etcd's history", seen: make(chan struct{}, 1)}
	s, err := etcd.Open(ctx, etcd.Config{Dir: filepath.Join(disk, "etcd"), Log: slog.New(log)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	value := bytes.Repeat([]byte("v"), 1<<20)
	last, err := s.Write(ctx, store.Create("/beat", nil))
	if err != nil {
		t.Fatal(err)
	}
	var kept []int64
	for err == nil {
		var rev int64
		if rev, err = s.Write(ctx, store.Create(fmt.Sprintf("/%d", len(kept)), value)); err == nil {
			kept = append(kept, rev)
		}
	}
	if !errors.Is(err, store.ErrNoSpace) {
		t.Fatal(err)
	}
	hog(t, filepath.Join(disk, "hog"))
	snapshot, err := s.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	read := sync.OnceValue(snapshot.Close)
	defer read()                        //nolint:errcheck // it is called below, unless the test has failed
	for i := 0; i < len(kept); i += 2 { // each has a neighbour that stays
		if _, err = s.Write(store.Essential(ctx), store.Delete(fmt.Sprintf("/%d", i), kept[i])); err != nil {
			t.Fatalf("a full disk does not delete: %v", err)
		}
	}
	if _, err := s.Write(ctx, store.Create("/more", value)); !errors.Is(err, store.ErrNoSpace) { // wakes housekeeping
		t.Fatalf("on a full disk: %v", err)
	}
	select {
	case <-log.seen:
	case err := <-s.Err():
		t.Fatalf("it ended: %v", err)
	case <-ctx.Done():
		t.Fatal("all history was compacted while the file could only grow")
	}
	if err := read(); err != nil {
		t.Fatal(err)
	}
	again := func(what string, write func() error) {
		t.Helper()
		for err := write(); err != nil; err = write() {
			if !errors.Is(err, store.ErrNoSpace) {
				t.Fatalf("%s: %v", what, err)
			}
			select {
			case err := <-s.Err():
				t.Fatalf("it ended: %v", err)
			case <-ctx.Done():
				t.Fatalf("no %s any more", what)
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	again("heartbeat", func() error {
		_, err := s.Write(store.Essential(ctx), store.Update("/beat", []byte("alive"), last))
		return err
	})
	if err := os.Remove(filepath.Join(disk, "hog")); err != nil {
		t.Fatal(err)
	}
	again("new object", func() error {
		_, err := s.Write(ctx, store.Create("/again", value))
		return err
	})
	page, err := s.List(ctx, "/", "", 0, 0)
	if err != nil || len(page.KVs) != len(kept)/2+2 {
		t.Errorf("%d are there, not %d, %v", len(page.KVs), len(kept)/2+2, err)
	}
}
