package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"minik8s/internal/certs"
	"minik8s/internal/store"
	"minik8s/internal/store/etcd"
	"minik8s/internal/store/storetest"
)

// cluster makes members whose certificates are signed by one CA.
type cluster struct {
	t     *testing.T
	ca    *certs.Authority
	dir   string
	first *etcd.Store
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	dir := t.TempDir()
	ca, err := certs.OpenAuthority(dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{t: t, ca: ca, dir: dir}
}

// config is that of a member with a name, at a port that was free a moment ago.
func (c *cluster) config(name string) etcd.Config {
	c.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	at := l.Addr().String()
	l.Close()
	if _, err := c.ca.Peer(c.dir, name, "member", []string{"127.0.0.1"}); err != nil {
		c.t.Fatal(err)
	}
	file := func(end string) string { return filepath.Join(c.dir, name+end) }
	return etcd.Config{Dir: file(""), Name: name, Log: slog.New(slog.DiscardHandler), Peers: &etcd.Peers{Address: at, User: "member",
		CertFile: file(".crt"), KeyFile: file(".key"), CAFile: filepath.Join(c.dir, "ca.crt")}}
}

// open opens a member, the first of the cluster or one that joins it.
func (c *cluster) open(cfg etcd.Config) *etcd.Store {
	c.t.Helper()
	if c.first != nil {
		first := c.first
		cfg.Join = func(ctx context.Context) ([]string, error) { return first.Admit(ctx, cfg.Name, cfg.Peers.Address) }
	}
	s := open(c.t, cfg)
	if c.first == nil {
		c.first = s
	}
	c.t.Cleanup(func() { s.Close() })
	return s
}

// await waits until the members are as wanted.
func await(t *testing.T, s *etcd.Store, what string, ok func([]etcd.Member) bool) []etcd.Member {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		m, err := s.Members(ctx)
		if err == nil && ok(m) {
			return m
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("not %s: %+v, %v", what, m, err)
		}
	}
}

func voters(n int) func([]etcd.Member) bool {
	return func(members []etcd.Member) bool {
		learners := 0
		for _, m := range members {
			if m.Learner {
				learners++
			}
		}
		return len(members)-learners == n
	}
}

// A member that does not vote keeps the store's whole contract, as one alone does.
func TestContractOfALearner(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		c := newCluster(t)
		c.open(c.config("a"))
		return c.open(c.config("b"))
	})
}

// Others join a member that is in use: nobody's write fails, a watch misses nothing, and what was there is there.
func TestJoinUnderLoad(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := newCluster(t)
	a := c.open(c.config("a"))
	w, err := a.Watch(ctx, "/", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	joined := make(chan struct{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	written := map[int64]bool{}
	for g := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				rev, err := a.Write(ctx, store.Create(fmt.Sprintf("/%d/%d", g, i), []byte("x")))
				if err != nil {
					t.Errorf("a write failed: %v", err)
					return
				}
				mu.Lock()
				written[rev] = true
				mu.Unlock()
				select {
				case <-joined:
					return
				default:
				}
			}
		})
	}
	b := c.open(c.config("b"))
	await(t, b, "one voter, with one learner", voters(1))
	d := c.open(c.config("c"))
	await(t, d, "three voters", voters(3))
	close(joined)
	wg.Wait()
	last := int64(0)
	for len(written) > 0 {
		select {
		case batch, ok := <-w.Batches():
			if !ok {
				t.Fatalf("the watch ended with %d to come: %v", len(written), w.Err())
			}
			for _, e := range batch.Events {
				if e.KV.Modified <= last {
					t.Fatalf("the watch went back from %d to %d", last, e.KV.Modified)
				}
				last = e.KV.Modified
				delete(written, last)
			}
		case <-ctx.Done():
			t.Fatalf("%d writes were not seen", len(written))
		}
	}
	want, err := a.List(ctx, "/", "", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*etcd.Store{b, d} {
		got, err := s.List(ctx, "/", "", 0, 0)
		if err != nil || !slices.EqualFunc(got.KVs, want.KVs, func(x, y store.KV) bool { return x.Key == y.Key && x.Modified == y.Modified }) {
			t.Errorf("%d keys, want %d: %v", len(got.KVs), len(want.KVs), err)
		}
	}
}

// Three members join one that was alone, at once: each is admitted, one after the other.
func TestJoinAtOnce(t *testing.T) {
	c := newCluster(t)
	c.open(c.config("a"))
	var wg sync.WaitGroup
	for _, cfg := range []etcd.Config{c.config("b"), c.config("c"), c.config("d")} {
		wg.Go(func() { c.open(cfg) })
	}
	wg.Wait()
	members := await(t, c.first, "three voters", voters(3))
	if len(members) != 4 {
		t.Errorf("%+v", members)
	}
}

// Of two machines with one name that ask at the same moment one is admitted, though neither has started yet.
func TestAdmitOneName(t *testing.T) {
	c := newCluster(t)
	a := c.open(c.config("a"))
	var errs [2]error
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { _, errs[i] = a.Admit(t.Context(), "twin", fmt.Sprintf("127.0.0.1:%d", i+1)) })
	}
	wg.Wait()
	if (errs[0] == nil) == (errs[1] == nil) || !errors.Is(errors.Join(errs[:]...), etcd.ErrMember) {
		t.Error(errs)
	}
	members := await(t, a, "members", func([]etcd.Member) bool { return true })
	if len(members) != 2 || members[1].Name != "twin" || !members[1].Joining || members[0].Joining {
		t.Errorf("%+v", members)
	}
	if _, err := a.Admit(t.Context(), "twin", members[1].Address); err != nil {
		t.Error("who was admitted asks again:", err)
	}
}

// A machine gets neither the name nor the address of a member that is another machine.
func TestAdmitRefuses(t *testing.T) {
	c := newCluster(t)
	acfg, bcfg := c.config("a"), c.config("b")
	a := c.open(acfg)
	c.open(bcfg)
	await(t, a, "the other's name", func(m []etcd.Member) bool { return len(m) == 2 && !m[0].Joining && !m[1].Joining })
	for _, x := range []struct{ name, address string }{{"x", bcfg.Peers.Address}, {"b", "127.0.0.1:1"}, {"x", acfg.Peers.Address}} {
		if _, err := a.Admit(t.Context(), x.name, x.address); !errors.Is(err, etcd.ErrMember) {
			t.Errorf("%s at %s: %v", x.name, x.address, err)
		}
	}
	if m := await(t, a, "both members", func(m []etcd.Member) bool { return true }); len(m) != 2 {
		t.Errorf("%+v", m)
	}
}

// The leader ends while all members are written to. Each write through the others succeeds, or it is not known whether it
// did: none that was acknowledged is lost, and none that was refused is there. Reads see all that was acknowledged.
func TestLeaderLost(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := newCluster(t)
	cfg := c.config("a")
	a, err := etcd.Open(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.first = a
	b, d := c.open(c.config("b")), c.open(c.config("c"))
	await(t, a, "three voters", voters(3))
	if leads, _ := a.Leads(); !leads {
		t.Fatal("the first member does not lead")
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	written, unknown := map[string]int64{}, map[string]bool{}
	lost := make(chan struct{})
	const more = 20 // writes of each writer after the leader is lost
	for i, s := range []*etcd.Store{b, d} {
		for g := range 4 {
			wg.Go(func() {
				for n, left := 0, more; left > 0; n++ {
					select {
					case <-lost:
						left--
					default:
					}
					key := fmt.Sprintf("/%d/%d/%d", i, g, n)
					rev, err := s.Write(ctx, store.Create(key, []byte(key)))
					switch {
					case errors.Is(err, store.ErrUnknown):
						mu.Lock()
						unknown[key] = true
						mu.Unlock()
					case err != nil:
						t.Errorf("%s: %v", key, err)
						return
					default:
						if kv, err := s.Get(ctx, key); err != nil || kv.Modified != rev {
							t.Errorf("%s was written at %d, read at %d: %v", key, rev, kv.Modified, err)
						}
						mu.Lock()
						written[key] = rev
						mu.Unlock()
					}
				}
			})
		}
	}
	a.Halt()
	close(lost)
	wg.Wait()
	page, err := b.List(ctx, "/", "", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range page.KVs {
		if rev, ok := written[kv.Key]; !unknown[kv.Key] && (!ok || rev != kv.Modified) {
			t.Errorf("%s is of %d, acknowledged was %d", kv.Key, kv.Modified, rev)
		}
		delete(written, kv.Key)
	}
	if len(written) > 0 {
		t.Errorf("%d acknowledged writes are lost", len(written))
	}
	t.Logf("%d written, %d unknown", len(page.KVs), len(unknown))
	// The lost member comes back with its data, and has what it missed.
	a = c.open(cfg)
	got, err := a.List(ctx, "/", "", 0, 0)
	if err != nil || len(got.KVs) != len(page.KVs) {
		t.Errorf("after its return it has %d of %d: %v", len(got.KVs), len(page.KVs), err)
	}
}
