package etcd_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"minik8s/internal/store"
	"minik8s/internal/store/etcd"
	"minik8s/internal/store/etcd/recovery"
)

// others asks one other store, as far as it is there.
type others struct {
	cfg   etcd.Config
	store atomic.Pointer[etcd.Store]
	seen  atomic.Pointer[[]string] // the servers that were named at last
	asked chan struct{}            // gets a value for each question, unless it is full
	// behind is a member that the others still know in so many answers.
	behind  atomic.Uint64
	answers atomic.Int32
}

func (o *others) Members(ctx context.Context, servers []string) (ids []uint64, revision int64, err error) {
	select {
	case o.asked <- struct{}{}:
	default:
	}
	o.seen.Store(&servers)
	s := o.store.Load()
	if s == nil {
		return nil, 0, errors.New("nobody is there")
	}
	if revision, err = s.Revision(ctx); err != nil {
		return nil, 0, err
	}
	for _, m := range s.Known() {
		ids = append(ids, m.ID)
	}
	if o.behind.Load() != 0 && o.answers.Add(-1) >= 0 {
		ids = append(ids, o.behind.Load())
	}
	return ids, revision, nil
}

func (o *others) Admit(ctx context.Context, servers []string) ([]string, error) {
	o.seen.Store(&servers)
	return o.store.Load().Admit(ctx, o.cfg.Name, o.cfg.Peers.Address)
}

// knowing is a member's configuration with others that it can ask.
func (c *cluster) knowing(name string) (etcd.Config, *others) {
	cfg := c.config(name)
	cfg.API = "192.0.2.1:6443"
	o := &others{cfg: cfg, asked: make(chan struct{}, 1)}
	cfg.Others = o
	return cfg, o
}

func idOf(t *testing.T, s *etcd.Store, name string) uint64 {
	t.Helper()
	for _, m := range s.Known() {
		if m.Name == name {
			return m.ID
		}
	}
	t.Fatalf("no member %s", name)
	return 0
}

// remove removes a member by whoever leads: on a busy machine that may be another at any time.
func remove(t *testing.T, id uint64, by ...*etcd.Store) {
	t.Helper()
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		for _, s := range by {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			err = s.Remove(ctx, id)
			cancel()
			if err == nil || !slices.ContainsFunc(s.Known(), func(m etcd.Member) bool { return m.ID == id }) {
				return
			}
		}
	}
	t.Fatal(err)
}

// A member that was removed becomes a new one by itself: when it is started the next time, while it runs, and when it
// had been killed on its way. Others' answers count, and no silence.
func TestRemovedComesBack(t *testing.T) {
	c := newCluster(t)
	acfg, _ := c.knowing("a")
	a := c.open(acfg)
	cfg, o := c.knowing("b")
	b := open(t, joins(a, cfg))
	d := c.open(joins(a, c.config("d")))
	await(t, a, "three voters", voters(3))
	o.store.Store(a)
	fill(t, a, 0, 10)

	back := func(what string, s *etcd.Store, was uint64) {
		t.Helper()
		await(t, a, what, func(m []etcd.Member) bool {
			return len(m) == 3 && voters(3)(m) && slices.ContainsFunc(m, func(m etcd.Member) bool { return m.Name == "b" && m.ID != was })
		})
		if _, err := s.Write(t.Context(), store.Create("/"+what, nil)); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if got, want := count(t, s), count(t, d); got != want {
			t.Errorf("%s: it has %d keys, the others %d", what, got, want)
		}
		if kept, err := os.ReadDir(filepath.Join(cfg.Dir, "removed")); err != nil || len(kept) == 0 {
			t.Errorf("what it had is not kept: %v", err)
		}
	}
	was := idOf(t, a, "b")
	w, err := b.Watch(t.Context(), "/", 0)
	if err != nil {
		t.Fatal(err)
	}
	o.behind.Store(was) // it hears of its removal before those that it asks
	o.answers.Store(3)
	remove(t, was, a, d, b)
	back("while it runs", b, was)
	seen := map[string]bool{}
	for !seen["/while it runs"] {
		batch, ok := <-w.Batches()
		if !ok {
			t.Fatal(w.Err())
		}
		for _, e := range batch.Events {
			seen[e.KV.Key] = true
		}
	}
	w.Stop()
	if s := *o.seen.Load(); !slices.Contains(s, "https://192.0.2.1:6443") {
		t.Errorf("it asked %v", s)
	}

	was = idOf(t, a, "b")
	b.Halt()
	remove(t, was, a, d, b)
	fill(t, a, 10, 20)
	b = open(t, cfg)
	back("while it was away", b, was)

	// Nobody can say: it waits for those who can. Then it is killed after it has left.
	was = idOf(t, a, "b")
	b.Halt()
	remove(t, was, a, d, b)
	o.store.Store(nil)
	<-o.asked
	ctx, cancel := context.WithCancel(t.Context())
	opened := make(chan error)
	go func() {
		_, err := etcd.Open(ctx, cfg)
		opened <- err
	}()
	for range 3 {
		<-o.asked
	}
	if _, err := os.Stat(filepath.Join(cfg.Dir, "member")); err != nil {
		t.Errorf("without an answer: %v", err)
	}
	cancel()
	if err := <-opened; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(cfg.Dir, "member", "others"), []byte(`["https://192.0.2.7:6443"]`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(cfg.Dir, "removed")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(cfg.Dir, "member"), filepath.Join(cfg.Dir, "removed")); err != nil {
		t.Fatal(err)
	}
	o.store.Store(a)
	b = open(t, cfg)
	t.Cleanup(func() { b.Close() })
	back("after a kill on its way", b, was)
	if s := *o.seen.Load(); !slices.Equal(s, []string{"https://192.0.2.7:6443"}) {
		t.Errorf("it asked %v", s)
	}
}

// The cluster was made anew out of one member while the other was away. That one, which alone voted, does not go on as
// the old cluster, but joins the new one; and the new one does not join the old one, whoever is asked.
func TestOldClusterGivesWay(t *testing.T) {
	c := newCluster(t)
	acfg, ao := c.knowing("a")
	a := open(t, acfg)
	cfg, o := c.knowing("b")
	b := open(t, joins(a, cfg))
	await(t, b, "a learner", func(m []etcd.Member) bool { return len(m) == 2 && m[1].Name == "b" })
	fill(t, a, 0, 10)
	if n := count(t, b); n != 10 {
		t.Fatal(n)
	}
	a.Halt()
	b.Halt()
	if _, err := recovery.Recover(t.Context(), cfg.Dir, quiet); err != nil {
		t.Fatal(err)
	}
	b = open(t, cfg)
	c.open(joins(b, c.config("d")))
	fill(t, b, 10, 20)
	// The old one cannot ask anybody and goes on, until the new one can be asked.
	a = open(t, acfg)
	t.Cleanup(func() { a.Close() })
	for { // an election may be on
		_, err := a.Write(t.Context(), store.Create("/of-the-old-one", nil))
		if err == nil || errors.Is(err, store.ErrExists) {
			break
		}
		if !errors.Is(err, store.ErrUnknown) && !errors.Is(err, store.ErrUnavailable) {
			t.Fatal(err)
		}
	}
	o.store.Store(a)
	ids, _, err := o.Members(t.Context(), nil)
	if err != nil || slices.Contains(ids, idOf(t, b, "b")) {
		t.Fatal(ids, err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	<-o.asked
	b = open(t, cfg) // it is not one of the old ones, which are all that it can ask
	<-o.asked
	t.Cleanup(func() { b.Close() })
	if n := count(t, b); n != 20 {
		t.Errorf("the new cluster has %d keys", n)
	}
	ao.store.Store(b)
	await(t, b, "the old one has joined", func(m []etcd.Member) bool { return len(m) == 3 && m[0].Name == "a" })
	until, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		page, err := a.List(until, "/", "", 0, 0)
		if err == nil && len(page.KVs) == 20 {
			break
		}
		select {
		case <-until.Done():
			t.Fatalf("%d keys, %v", len(page.KVs), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// A member that joins, leaves and joins again within a second, of which etcd makes its id, is taken.
func TestJoinsAgainAtOnce(t *testing.T) {
	c := newCluster(t)
	cfg, _ := c.knowing("a")
	a := c.open(cfg)
	for range 4 {
		if _, err := a.Admit(t.Context(), "b", "192.0.2.9:2380"); err != nil {
			t.Fatal(err)
		}
		await(t, a, "two members", func(m []etcd.Member) bool { return len(m) == 2 })
		for _, m := range a.Known() {
			if !m.Self {
				remove(t, m.ID, a)
			}
		}
		await(t, a, "one member", func(m []etcd.Member) bool { return len(m) == 1 })
	}
}
