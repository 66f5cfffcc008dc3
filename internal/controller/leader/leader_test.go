package leader_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/faulty"
	"minik8s/internal/controller/controllertest"
	"minik8s/internal/controller/leader"
)

// The tests of this package run in a bubble of package synctest: time stands still while anybody works and moves when
// all wait. "At once" therefore means that no time has passed.

// belief is what a member believes of Raft's leadership.
type belief struct {
	mu      sync.Mutex
	leads   bool
	changed chan struct{}
}

func believing(leads bool) *belief { return &belief{leads: leads, changed: make(chan struct{})} }

func (b *belief) Leads() (bool, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.leads, b.changed
}

func (b *belief) set(leads bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leads = leads
	close(b.changed)
	b.changed = make(chan struct{})
}

// member is an elector and what has become of it.
type member struct {
	*belief
	leader.Elector
	c       *controllertest.Cluster
	term    atomic.Pointer[leader.Term] // nil while it does not lead
	terms   atomic.Int32
	standby atomic.Int32
	ended   chan error
	stop    context.CancelFunc
	log     bytes.Buffer
}

// begin starts an elector whose led part is work; nil: it waits for its end. work gets a client behind the term's fence.
func begin(c *controllertest.Cluster, cl client.Interface, b *belief, id string, work func(ctx context.Context, m *member, led client.Interface) error) *member {
	ctx, stop := context.WithCancel(c.Context())
	m := &member{belief: b, c: c, ended: make(chan error, 1), stop: stop}
	m.Elector = leader.Elector{Raft: b, Client: cl, Namespace: metav1.NamespaceDefault, Name: "test", Identity: id,
		Standby: func() { m.standby.Add(1) }, Log: slog.New(slog.NewTextHandler(&m.log, nil))}
	go func() {
		m.ended <- m.Run(ctx, func(ctx context.Context, t *leader.Term) error {
			m.term.Store(t)
			m.terms.Add(1)
			defer m.term.Store(nil)
			if work != nil {
				return work(ctx, m, m.fenced(t))
			}
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	return m
}

func (m *member) fenced(t *leader.Term) client.Interface {
	return m.c.Under("serviceaccount-controller", t.Lease, t.Fell)
}

func (m *member) leading() bool { return m.term.Load() != nil }

// pass lets a time pass, and what follows from it happen.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

var key = client.Key{Kind: api.Leases, Namespace: metav1.NamespaceDefault, Name: "test"}

func lease(t *testing.T, c *controllertest.Cluster) *coordinationv1.Lease {
	t.Helper()
	l, err := client.Get[*coordinationv1.Lease](c.Context(), c.Admin(), key)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// says compares the Lease with what people should see.
func says(t *testing.T, c *controllertest.Cluster, holder string, transitions int32) {
	t.Helper()
	s := lease(t, c).Spec
	if s.HolderIdentity == nil || *s.HolderIdentity != holder || s.LeaseTransitions == nil || *s.LeaseTransitions != transitions ||
		s.AcquireTime == nil || !s.AcquireTime.Equal(s.RenewTime) || s.LeaseDurationSeconds != nil {
		t.Errorf("the Lease says %v, %v transitions, %v, %v, %v; want %s, %d and no duration",
			s.HolderIdentity, s.LeaseTransitions, s.AcquireTime, s.RenewTime, s.LeaseDurationSeconds, holder, transitions)
	}
}

// edit changes the Lease as a user does.
func edit(t *testing.T, c *controllertest.Cluster, holder string) {
	t.Helper()
	upd := lease(t, c).DeepCopy()
	upd.Spec.HolderIdentity = &holder
	if _, err := c.Admin().Update(c.Context(), upd, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, c *controllertest.Cluster) {
	t.Helper()
	if _, err := c.Admin().Delete(c.Context(), key, nil); err != nil {
		t.Fatal(err)
	}
}

var names atomic.Int64

func note(ctx context.Context, c client.Interface) error {
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: fmt.Sprint("note-", names.Add(1))}}
	_, err := c.Create(ctx, obj, client.WriteOptions{})
	return err
}

// deposed reports whether a write was refused because of its fence.
func deposed(err error) bool { return apierrors.ReasonForError(err) == api.ReasonDeposed }

// Who leads takes the Lease at once by one write, and then writes nothing for as long as nothing changes.
func TestLeadsAtOnceAndIdles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, began := controllertest.New(t), time.Now()
		m := begin(c, c.As("leader"), believing(true), "a", nil)
		synctest.Wait()
		if !m.leading() || m.standby.Load() != 0 || time.Since(began) != 0 {
			t.Fatal("it does not lead at once")
		}
		says(t, c, "a", 0)
		first := lease(t, c).ResourceVersion
		pass(24 * time.Hour)
		if got := lease(t, c).ResourceVersion; got != first || m.terms.Load() != 1 {
			t.Errorf("the Lease was written again: version %s, then %s, in %d terms", first, got, m.terms.Load())
		}
		m.stop()
		if err := <-m.ended; err != nil {
			t.Error(err)
		}
	})
}

// A master that was killed takes the Lease again, in a new version also if its clock says the same time, and no
// transition is counted.
func TestTakesItsOwnAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := controllertest.New(t)
		a := begin(c, c.Admin(), believing(true), "a", nil)
		synctest.Wait()
		old := a.term.Load()
		a.stop() // were it to go on, it would take the Lease back
		again := begin(c, c.Admin(), believing(true), "a", nil)
		synctest.Wait()
		if !again.leading() || again.term.Load().Lease.ResourceVersion == old.Lease.ResourceVersion {
			t.Fatal("the Lease was not taken in a new version")
		}
		says(t, c, "a", 0)
		if err := note(c.Context(), a.fenced(old)); !deposed(err) {
			t.Errorf("what the killed one had still under way was written: %v", err)
		}
		if err := note(c.Context(), again.fenced(again.term.Load())); err != nil {
			t.Error(err)
		}
	})
}

// Who does not lead is ready, waits and writes nothing; when it is elected it leads at once, and the Lease says so.
func TestStandsByAndIsElected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := controllertest.New(t)
		a, b := begin(c, c.Admin(), believing(true), "a", nil), begin(c, c.Admin(), believing(false), "b", nil)
		pass(time.Hour)
		if !a.leading() || b.leading() || b.standby.Load() != 1 || a.standby.Load() != 0 {
			t.Fatal("a does not lead alone, or b is not ready")
		}
		for i := range int32(4) {
			at := time.Now()
			from, to, holder := a, b, "b"
			if i%2 == 1 {
				from, to, holder = b, a, "a"
			}
			from.set(false)
			to.set(true)
			synctest.Wait()
			if from.leading() || !to.leading() || time.Since(at) != 0 {
				t.Fatalf("change %d: it did not move at once", i)
			}
			says(t, c, holder, i+1)
		}
		if a.standby.Load() != 1 || b.standby.Load() != 1 {
			t.Error("they were said to be ready again and again")
		}
	})
}

// A change of leadership that comes back to who led ends its term all the same: another may have led meanwhile.
func TestElectedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := controllertest.New(t)
		a := begin(c, c.Admin(), believing(true), "a", nil)
		synctest.Wait()
		old := a.term.Load()
		a.set(true)
		synctest.Wait()
		if now := a.term.Load(); now == nil || now == old || a.terms.Load() != 2 {
			t.Fatal("the old term goes on")
		}
		says(t, c, "a", 0)
	})
}

// A leader that was stopped and believes that it leads writes nothing any more once another has taken the Lease; it
// learns of it by its first write.
func TestStoppedLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := controllertest.New(t)
		a := begin(c, c.Admin(), believing(true), "a", nil)
		synctest.Wait()
		stopped := a.term.Load()
		b := begin(c, c.Admin(), believing(true), "b", nil)
		synctest.Wait()
		if a.term.Load() != stopped || !b.leading() {
			t.Fatal("b did not take the Lease while a sleeps")
		}
		a.mu.Lock()
		a.leads = false // what it hears when it wakes and asks; nobody tells it
		a.mu.Unlock()
		if err := note(c.Context(), a.fenced(stopped)); !deposed(err) {
			t.Fatalf("the stopped leader wrote: %v", err)
		}
		if err := note(c.Context(), b.fenced(b.term.Load())); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if a.leading() || a.standby.Load() != 1 {
			t.Fatal("its parts work on")
		}
		says(t, c, "b", 1)
	})
}

// A user who changes or deletes the Lease stops the leader for no time at all, and a version of the Lease is back.
func TestUserChangesTheLease(t *testing.T) {
	for name, change := range map[string]func(*testing.T, *controllertest.Cluster){
		"edited":  func(t *testing.T, c *controllertest.Cluster) { edit(t, c, "me") },
		"deleted": remove,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := controllertest.New(t)
				m := begin(c, c.Admin(), believing(true), "a", nil)
				synctest.Wait()
				change(t, c)
				pass(time.Minute)
				at, before := time.Now(), m.term.Load()
				if err := note(c.Context(), m.fenced(before)); !deposed(err) {
					t.Fatalf("got %v", err)
				}
				synctest.Wait()
				if now := m.term.Load(); now == nil || now == before || time.Since(at) != 0 {
					t.Fatal("it did not take the Lease again at once")
				}
				if err := note(c.Context(), m.fenced(m.term.Load())); err != nil {
					t.Error(err)
				}
				if h := lease(t, c).Spec.HolderIdentity; h == nil || *h != "a" || m.terms.Load() != 2 {
					t.Errorf("holder %v after %d terms", h, m.terms.Load())
				}
				if !strings.Contains(m.log.String(), "its Lease was changed") {
					t.Errorf("the log says nothing: %s", m.log.String())
				}
			})
		})
	}
}

// A user who deletes the Lease all the time is no reason to spin, and the leader works between two deletions.
func TestLeaseDeletedInALoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := controllertest.New(t)
		var wrote atomic.Int32
		var loop atomic.Bool
		loop.Store(true)
		m := begin(c, c.Admin(), believing(true), "a", func(ctx context.Context, m *member, led client.Interface) error {
			if err := note(ctx, led); err == nil {
				wrote.Add(1)
			}
			if loop.Load() && m.terms.Load() < 1000 {
				remove(t, c)
				note(ctx, led) //nolint:errcheck // it is refused
			}
			<-ctx.Done()
			return ctx.Err()
		})
		pass(time.Minute)
		if n := m.terms.Load(); n < 55 || n > 75 || wrote.Load() != n {
			t.Errorf("%d terms in a minute, in %d of which something was written", n, wrote.Load())
		}
		loop.Store(false)
		pass(time.Minute)
		n := m.terms.Load()
		at := time.Now()
		edit(t, c, "me")
		note(c.Context(), m.fenced(m.term.Load())) //nolint:errcheck // it is refused
		synctest.Wait()
		if !m.leading() || m.terms.Load() != n+1 || time.Since(at) != 0 {
			t.Error("after a good term it hesitates")
		}
	})
}

// Whatever way the Lease cannot be taken, it is tried again; and a change of leadership ends the trying.
func TestCannotTake(t *testing.T) {
	for name, rates := range map[string]faulty.Rates{"dropped": {Drop: 1}, "lost": {Lose: 1}, "conflict": {Conflict: 1},
		"slow": {Delay: 1, MaxDelay: time.Hour}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := controllertest.New(t)
				line := faulty.New(c.Admin(), rates, 1)
				m := begin(c, line, believing(true), "a", nil)
				if pass(10 * time.Second); m.leading() {
					t.Fatal("it leads without the Lease")
				}
				at := time.Now()
				m.set(false)
				if synctest.Wait(); m.standby.Load() != 1 || time.Since(at) != 0 {
					t.Fatal("it does not stand by")
				}
				line.Heal()
				m.set(true)
				if synctest.Wait(); !m.leading() {
					t.Fatal("it does not lead")
				}
			})
		})
	}
}

// Parts that end by themselves are an error for the supervisor, which starts the elector again.
func TestLedPartsEnd(t *testing.T) {
	no := errors.New("no")
	for _, x := range []struct {
		name string
		work func() error
		want string
	}{
		{"with an error", func() error { return no }, "no"},
		{"without", func() error { return nil }, "without being told to"},
		{"with a panic", func() error { panic("oh") }, "oh"},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := controllertest.New(t)
				m := begin(c, c.Admin(), believing(true), "a", func(context.Context, *member, client.Interface) error { return x.work() })
				if err := <-m.ended; err == nil || !strings.Contains(err.Error(), x.want) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}
