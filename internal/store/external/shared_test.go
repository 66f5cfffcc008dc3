package external_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"minik8s/internal/store"
	"minik8s/internal/store/etcd/recovery"
	"minik8s/internal/store/external"
	"minik8s/internal/store/external/externaltest"
)

// Others write to the same etcd, and its revision runs ahead of what our watch tells. Who waits for the watch to be current
// does not wait long, and sees nothing of theirs; also where their prefix begins as ours does.
func TestOthersWrite(t *testing.T) {
	t.Parallel()
	server := externaltest.Start(t)
	ours := config(t, server)
	theirs := ours
	theirs.Prefix, theirs.Cluster = ours.Prefix+"-b", "another"
	s, o := open(t, ours), open(t, theirs)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	start, err := s.Revision(ctx)
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Watch(ctx, "", start)
	if err != nil {
		t.Fatal(err)
	}
	writing, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	for i := range 4 {
		wg.Go(func() {
			for n := 0; writing.Err() == nil; n++ {
				if _, err := o.Write(ctx, store.Create(fmt.Sprintf("/a/%d-%d", i, n), nil)); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	at, events := start, 0
	for round := range 100 {
		mine := int64(0)
		if round%10 == 0 {
			if mine, err = s.Write(ctx, store.Create(fmt.Sprint("/a/", round), nil)); err != nil {
				t.Fatal(err)
			}
		}
		now, err := s.Revision(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for at < now {
			select {
			case b := <-w.Batches():
				at = b.Revision
				for _, e := range b.Events {
					events++
					if mine != e.KV.Modified {
						t.Errorf("the watch tells of %s at %d", e.KV.Key, e.KV.Modified)
					}
				}
			case <-ctx.Done():
				t.Fatalf("round %d: the watch stays at %d, behind %d", round, at, now)
			}
		}
	}
	if events != 10 {
		t.Errorf("the watch told %d changes, want 10", events)
	}
	for prefix, want := range map[string]int{"/a/": 10, "": 10 + 3} { // the cluster's name, a master, the fence
		if page, err := s.List(ctx, prefix, "", 0, 0); err != nil || len(page.KVs) != want {
			t.Errorf("%q lists %d keys, want %d, %v", prefix, len(page.KVs), want, err)
		}
	}
}

// One prefix is one cluster's, and a new one is made only by who may.
func TestWhose(t *testing.T) {
	t.Parallel()
	server := externaltest.Start(t)
	cfg := config(t, server)
	tell := func(err error, says string) {
		t.Helper()
		if err == nil || !bytes.Contains([]byte(err.Error()), []byte(says)) {
			t.Errorf("want %q: %v", says, err)
		}
	}
	cfg.New = false
	_, err := external.Open(t.Context(), cfg)
	tell(err, "has no cluster below "+cfg.Prefix)
	if err := external.Vacant(t.Context(), cfg); err != nil {
		t.Error(err)
	}
	// Of many that make a cluster at once one does.
	var wg sync.WaitGroup
	var mu sync.Mutex
	var won []string
	for i := range 5 {
		wg.Go(func() {
			c := cfg
			c.New, c.Cluster = true, fmt.Sprint("c", i)
			s, err := external.Open(t.Context(), c)
			if err != nil {
				tell(err, "has another cluster below")
				return
			}
			mu.Lock()
			won = append(won, c.Cluster)
			mu.Unlock()
			s.Close()
		})
	}
	wg.Wait()
	if len(won) != 1 {
		t.Fatalf("%v have the prefix", won)
	}
	tell(external.Vacant(t.Context(), cfg), "has another cluster below")
	cfg.Cluster = won[0]
	open(t, cfg)
}

// One master leads. One that cannot renew its lease leads no more, and another does; one that stops gives way at once. One that
// was killed is in its place again when it is back, without waiting for the lease of before.
func TestLeads(t *testing.T) {
	t.Parallel()
	server := externaltest.Start(t)
	cfg := config(t, server)
	until := func(s *external.Store, want bool) {
		t.Helper()
		late := time.After(time.Minute)
		for {
			leads, changed := s.Leads()
			if leads == want {
				return
			}
			select {
			case <-changed:
			case <-late:
				t.Fatalf("leads: %v", leads)
			}
		}
	}
	start := func(cfg external.Config, identity string) *external.Store {
		t.Helper()
		cfg.Identity = identity
		s, err := external.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	way := newProxy(t, server.URL)
	far := cfg
	far.Servers = []string{way.url()}
	a, b := start(far, "m1"), start(cfg, "m2")
	until(a, true)
	until(b, false)
	way.closed.Store(true)
	way.cut()
	until(b, true)
	until(a, false)
	a.Close()
	way.closed.Store(false)

	c := start(far, "m1")
	until(c, false)
	b.Close()
	until(c, true)
	way.closed.Store(true)
	way.cut()
	began := time.Now()
	again := start(cfg, "m1")
	until(again, true)
	t.Logf("again after %s", time.Since(began))
	if leads, _ := c.Leads(); !leads {
		t.Error("the lease of before has ended before it was taken over")
	}
	c.Close()
	again.Close()
}

// A master whose connection was lost while the history was dropped still leads: nobody has changed its key.
func TestLeadsThroughCompaction(t *testing.T) {
	t.Parallel()
	server := externaltest.Start(t)
	direct := config(t, server)
	way := newProxy(t, server.URL)
	cfg := direct
	cfg.Servers = []string{way.url()}
	reopened := make(chan string, 1)
	cfg.Log = slog.New(slog.NewTextHandler(writer(func(p []byte) {
		if bytes.Contains(p, []byte("the watch on who leads goes on")) {
			reopened <- string(p)
		}
	}), &slog.HandlerOptions{Level: slog.LevelDebug}))
	s := open(t, cfg)
	direct.Name = ""
	o := open(t, direct)
	leads, changed := s.Leads()
	for !leads {
		<-changed
		leads, changed = s.Leads()
	}
	way.closed.Store(true)
	way.cut()
	var last int64
	var err error
	for i := range 3 {
		if last, err = o.Write(t.Context(), store.Create(fmt.Sprint("/a/", i), nil)); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.Compact(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	way.closed.Store(false)
	select {
	case <-reopened:
	case <-changed:
		t.Error("it does not lead any more")
	case <-time.After(20 * time.Second):
		t.Error("it does not see who leads")
	}
}

// The masters compact together: what is older than an interval is dropped, once.
func TestCompaction(t *testing.T) {
	t.Parallel()
	server := externaltest.Start(t)
	cfg := config(t, server)
	cfg.CompactEvery = 200 * time.Millisecond
	a, b := open(t, cfg), open(t, cfg)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	w, err := a.Watch(ctx, "/quiet/", 1)
	if err != nil {
		t.Fatal(err)
	}
	old, err := a.Write(ctx, store.Create("/a", nil))
	if err != nil {
		t.Fatal(err)
	}
	rev, err := a.Write(ctx, store.Update("/a", []byte("2"), old))
	if err != nil {
		t.Fatal(err)
	}
	for a.Compacted() < rev || b.Compacted() < rev {
		select {
		case <-ctx.Done():
			t.Fatalf("the history stays: %d, %d, want %d", a.Compacted(), b.Compacted(), rev)
		case <-w.Batches(): // a watch that has nothing to tell does not stay behind
		case <-time.After(10 * time.Millisecond):
		}
	}
	if _, err := a.List(ctx, "/", "", 0, old); !errors.Is(err, store.ErrCompacted) {
		t.Errorf("an old page: %v", err)
	}
	if _, err := a.History(ctx, "/", old); !errors.Is(err, store.ErrCompacted) {
		t.Errorf("old history: %v", err)
	}
	if kv, err := b.Get(ctx, "/a"); err != nil || string(kv.Value) != "2" {
		t.Errorf("%+v, %v", kv, err)
	}
	// A watch that was away at the compaction goes on, because it is not behind it.
	server.Kill()
	server.Start()
	last, err := a.Write(ctx, store.Create("/quiet/x", nil))
	if err != nil {
		t.Fatal(err)
	}
	for batch := range w.Batches() {
		if batch.Revision == last && len(batch.Events) == 1 {
			return
		}
	}
	t.Error(w.Err())
}

// Large objects, and more of them than go into one message: a watch and a history that catch up tell each write as a whole.
func TestLarge(t *testing.T) {
	t.Parallel()
	server := externaltest.Start(t)
	s := open(t, config(t, server))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	start, err := s.Write(ctx, store.Create("/a/largest", make([]byte, 1500<<10))) // etcd takes 1.5 MiB, all told
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(ctx, store.Create("/a/x", make([]byte, 2<<20))); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("2 MiB: %v", err)
	}
	if _, err := s.Write(ctx, store.Create("/a/x", make([]byte, 20<<20))); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("20 MiB: %v", err)
	}
	want := map[int64]int{}
	for i := range 20 {
		var changes []store.Change
		for j := range 1 + i%3 {
			changes = append(changes, store.Create(fmt.Sprintf("/a/%02d-%d", i, j), make([]byte, 400<<10)))
		}
		rev, err := s.Write(ctx, changes...)
		if err != nil {
			t.Fatal(err)
		}
		want[rev] = len(changes)
	}
	page, err := s.List(ctx, "/a/", "", 0, 0)
	if n := len(page.KVs); err != nil || n != 40 || page.Count != 40 || page.More {
		t.Fatalf("%d keys of %d, %v", n, page.Count, err)
	}
	for name, open := range map[string]func(context.Context, string, int64) (store.Watch, error){"watch": s.Watch, "history": s.History} {
		w, err := open(ctx, "/a/", start)
		if err != nil {
			t.Fatal(err)
		}
		left := len(want)
		for left > 0 {
			b, ok := <-w.Batches()
			if !ok {
				t.Fatalf("%s: it ended with %d missing: %v", name, left, w.Err())
			}
			got := map[int64]int{}
			for _, e := range b.Events {
				got[e.KV.Modified]++
			}
			for rev, n := range got {
				left--
				if want[rev] != n {
					t.Errorf("%s: a batch has %d of %d changes of revision %d", name, n, want[rev], rev)
				}
			}
		}
		w.Stop()
	}
}

// An etcd at its quota takes no writes, but deletes. What was refused is not there: etcd also answers that it is full when it
// has carried out the write that fills it.
func TestFull(t *testing.T) {
	t.Parallel()
	server := externaltest.New(t)
	server.Quota = 4 << 20
	server.Start()
	cfg := config(t, server)
	void := make(chan string, 100)
	cfg.Log = slog.New(slog.NewTextHandler(writer(func(p []byte) { void <- string(p) }), nil))
	s := open(t, cfg)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var mu sync.Mutex
	revs := map[string]int64{}
	var refused []string
	var wg sync.WaitGroup
	for i := range 32 { // several of them pass the first check for room, which is before the log
		wg.Go(func() {
			for n := 0; ; n++ {
				key := fmt.Sprintf("/a/%d-%d", i, n)
				rev, err := s.Write(ctx, store.Create(key, make([]byte, 20<<10)))
				mu.Lock()
				if err == nil {
					revs[key] = rev
				} else {
					refused = append(refused, key)
				}
				mu.Unlock()
				if err != nil {
					if !errors.Is(err, store.ErrNoSpace) {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	wg.Wait()
	for _, key := range refused {
		if kv, err := s.Get(ctx, key); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s was refused, and is there at %d, %v", key, kv.Modified, err)
		}
	}
	for key, rev := range revs {
		if _, err := s.Write(ctx, store.Delete(key, rev)); err != nil {
			t.Fatalf("a full etcd does not delete: %v", err)
		}
	}
	// Nor does it take a lease: that nobody leads is said, and why.
	s.Leads()
	select {
	case line := <-void:
		if !bytes.Contains([]byte(line), []byte("no master can be elected")) || !bytes.Contains([]byte(line), []byte("the store is full")) {
			t.Error(line)
		}
	case <-ctx.Done():
		t.Error("nothing is said")
	}
}

// A snapshot is in etcd's own form, and has what was acknowledged.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	server := externaltest.Start(t)
	s := open(t, config(t, server))
	rev, err := s.Write(t.Context(), store.Create("/a", nil))
	if err != nil {
		t.Fatal(err)
	}
	snap, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	var b bytes.Buffer
	n, err := snap.WriteTo(&b)
	if err != nil || n != snap.Size || int64(b.Len()) != n || snap.Revision < rev {
		t.Fatalf("%d bytes of %d, revision %d, %v", n, snap.Size, snap.Revision, err)
	}
	file := filepath.Join(t.TempDir(), "s.db")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := recovery.Check(file); err != nil {
		t.Error(err)
	}
}

// What is wrong with certificates is said; an etcd that is away is waited for, and that is said, too.
func TestConnect(t *testing.T) {
	t.Parallel()
	server, stranger := externaltest.Start(t), externaltest.New(t)
	good := config(t, server)
	for says, change := range map[string]func(*external.Config){
		"--etcd-cafile (" + stranger.CAFile + ") has not signed": func(c *external.Config) { c.CAFile = stranger.CAFile },
		"refuses the certificate in --etcd-certfile": func(c *external.Config) {
			c.CertFile, c.KeyFile = stranger.CertFile, stranger.KeyFile
		},
		"give --etcd-certfile and --etcd-keyfile": func(c *external.Config) { c.CertFile, c.KeyFile = "", "" },
		"its certificate is for another name":     func(c *external.Config) { c.Servers[0] = "https://localhost" + c.Servers[0][len("https://127.0.0.1"):] },
		"give https:// in --etcd-servers":         func(c *external.Config) { c.Servers[0] = "http" + c.Servers[0][len("https"):]; c.CAFile = "" },
		"etcd-cafile: open":                       func(c *external.Config) { c.CAFile = "/nowhere" },
		"has no certificate in PEM form":          func(c *external.Config) { c.CAFile = server.KeyFile },
		"etcd-certfile, etcd-keyfile: tls":        func(c *external.Config) { c.KeyFile = stranger.KeyFile },
	} {
		c := good
		c.Servers = append([]string(nil), good.Servers...)
		change(&c)
		_, err := external.Open(t.Context(), c)
		if err == nil || !bytes.Contains([]byte(err.Error()), []byte(says)) {
			t.Errorf("want %q: %v", says, err)
		}
	}
	server.Kill()
	said := make(chan string, 100)
	good.Log = slog.New(slog.NewTextHandler(writer(func(p []byte) { said <- string(p) }), nil))
	opened := make(chan error)
	var s *external.Store
	go func() {
		var err error
		s, err = external.Open(t.Context(), good)
		opened <- err
	}()
	if line := <-said; !bytes.Contains([]byte(line), []byte("waits for etcd")) || !bytes.Contains([]byte(line), []byte("connection refused")) {
		t.Error(line)
	}
	server.Start()
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	// The files are read again: for the next connection another certificate counts.
	copyFile := func(from, to string) {
		t.Helper()
		b, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	next, nextKey := server.Client("next")
	copyFile(stranger.CertFile, good.CertFile)
	copyFile(stranger.KeyFile, good.KeyFile)
	server.Kill()
	server.CertFile, server.KeyFile = next, nextKey
	server.Start()
	if _, err := s.Revision(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("with a stranger's certificate: %v", err)
	}
	copyFile(next, good.CertFile)
	copyFile(nextKey, good.KeyFile)
	if _, err := s.Revision(t.Context()); err != nil {
		t.Error(err)
	}
}

// An etcd without certificates, and one that is given with https but has none.
func TestPlain(t *testing.T) {
	t.Parallel()
	server := externaltest.New(t)
	server.Plain = true
	server.Start()
	cfg := config(t, server)
	cfg.CAFile, cfg.CertFile, cfg.KeyFile = "", "", ""
	s := open(t, cfg)
	if _, err := s.Write(t.Context(), store.Create("/a", nil)); err != nil {
		t.Error(err)
	}
	cfg.Servers = []string{"https" + server.URL[len("http"):]}
	if _, err := external.Open(t.Context(), cfg); err == nil || !bytes.Contains([]byte(err.Error()), []byte("speaks no TLS")) {
		t.Error(err)
	}
}

type writer func([]byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }
