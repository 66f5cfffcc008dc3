package leader

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/faulty"
	ct "minik8s/internal/controller/controllertest"
)

// The tests of this file run in a bubble of package synctest: time stands still while anybody works and
// moves when all wait, so that the real times of a Lease cost nothing.

// candidate is an elector and what has become of it.
type candidate struct {
	Elector
	leads   atomic.Bool
	standby atomic.Bool
	ended   chan error
	stop    context.CancelFunc
}

func campaign(c *ct.Cluster, cl client.Interface, id string) *candidate {
	ctx, stop := context.WithCancel(c.Context())
	x := &candidate{ended: make(chan error, 1), stop: stop}
	x.Elector = Elector{Client: cl, Namespace: metav1.NamespaceDefault, Name: "test", Identity: id, Standby: func() { x.standby.Store(true) }}
	go func() {
		x.ended <- x.Run(ctx, func(ctx context.Context) error {
			x.leads.Store(true)
			defer x.leads.Store(false)
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	return x
}

// pass lets a time pass, and what follows from it happen.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// edit changes the Lease directly, without an elector.
func edit(t *testing.T, c *ct.Cluster, holder string) {
	t.Helper()
	l, err := client.Get[*coordinationv1.Lease](c.Context(), c.Admin(), client.Key{Kind: api.Leases, Namespace: metav1.NamespaceDefault, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	upd := l.DeepCopy()
	upd.Spec.HolderIdentity = &holder
	if _, err := c.Admin().Update(c.Context(), upd, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Another takes the Lease: the work ends, and who lost it stands by until the other is silent for long
// enough.
func TestAnotherTakesTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := ct.New(t)
		a := campaign(c, c.Admin(), "a")
		synctest.Wait()
		if !a.leads.Load() || a.standby.Load() {
			t.Fatal("a free lease was not taken at once")
		}
		edit(t, c, "b")
		if err := <-a.ended; !errors.Is(err, ErrLost) {
			t.Fatalf("got %v", err)
		}
		if a.leads.Load() {
			t.Fatal("it works on")
		}
		if holder(c) != "b" {
			t.Fatal("what was another's was given back")
		}
		a = campaign(c, c.Admin(), "a")
		synctest.Wait()
		if a.leads.Load() || !a.standby.Load() {
			t.Fatal("it does not stand by")
		}
		pass(Duration - time.Second)
		if a.leads.Load() {
			t.Fatal("it took what was another's")
		}
		pass(time.Second + RetryEvery)
		if !a.leads.Load() {
			t.Fatal("it did not take what had run out")
		}
	})
}

// cable is a client that may be unplugged: then its calls go to another.
type cable struct {
	client.Interface
	unplugged atomic.Bool
	bad       client.Interface
}

func (c *cable) now() client.Interface {
	if c.unplugged.Load() {
		return c.bad
	}
	return c.Interface
}

func (c *cable) Get(ctx context.Context, key client.Key) (api.Object, error) {
	return c.now().Get(ctx, key)
}

func (c *cable) Update(ctx context.Context, obj api.Object, opts client.WriteOptions) (api.Object, error) {
	return c.now().Update(ctx, obj, opts)
}

// hung never answers before the caller's timeout.
type hung struct{ client.Interface }

func (hung) Get(ctx context.Context, _ client.Key) (api.Object, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// Renewals that fail, whatever way they fail, end the work before another may begin; and not sooner than
// they must, as most failures pass.
func TestCannotRenew(t *testing.T) {
	for name, bad := range map[string]func(client.Interface) client.Interface{
		"dropped":  func(c client.Interface) client.Interface { return faulty.New(c, faulty.Rates{Drop: 1}, 1) },
		"lost":     func(c client.Interface) client.Interface { return faulty.New(c, faulty.Rates{Lose: 1}, 1) },
		"conflict": func(c client.Interface) client.Interface { return faulty.New(c, faulty.Rates{Conflict: 1}, 1) },
		"hung":     func(c client.Interface) client.Interface { return hung{c} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := ct.New(t)
				line := &cable{Interface: c.Admin(), bad: bad(c.Admin())}
				a := campaign(c, line, "a")
				synctest.Wait()
				b := campaign(c, c.Admin(), "b")
				synctest.Wait()
				line.unplugged.Store(true)
				pass(RenewEvery)
				if !a.leads.Load() {
					t.Fatal("one failure ended it")
				}
				pass(Duration - margin - RenewEvery)
				if a.leads.Load() {
					t.Fatal("it works on though it cannot renew")
				}
				if err := <-a.ended; !errors.Is(err, ErrLost) {
					t.Fatalf("got %v", err)
				}
				if b.leads.Load() {
					t.Fatal("the other began too early")
				}
				pass(2 * Duration) // where the writes were made, and only their answers were lost, the Lease is younger
				if !b.leads.Load() {
					t.Fatal("nobody leads")
				}
			})
		})
	}
}

// late is a client whose next write is done at once and answered late.
type late struct {
	hung
	wrote atomic.Bool
}

func (l *late) Get(ctx context.Context, key client.Key) (api.Object, error) {
	if l.wrote.Load() {
		return l.hung.Get(ctx, key)
	}
	return l.Interface.Get(ctx, key)
}

func (l *late) Create(ctx context.Context, obj api.Object, opts client.WriteOptions) (api.Object, error) {
	defer func() { <-time.After(Duration / 3) }()
	defer l.wrote.Store(true)
	return l.Interface.Create(ctx, obj, opts)
}

// The time of a Lease counts from its writing, not from the answer: others saw it when it was written.
func TestLateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := ct.New(t)
		a := campaign(c, &late{hung: hung{c.Admin()}}, "a")
		synctest.Wait()
		b := campaign(c, c.Admin(), "b")
		for range (Duration+RetryEvery)/time.Second + 1 {
			pass(time.Second)
			if a.leads.Load() && b.leads.Load() {
				t.Fatal("two lead")
			}
			if b.leads.Load() {
				return
			}
		}
		t.Fatal("nobody took it")
	})
}

// Failures that pass in time are not noticed.
func TestFailuresPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := ct.New(t)
		bad := faulty.New(c.Admin(), faulty.Rates{Drop: 1}, 1)
		line := &cable{Interface: c.Admin(), bad: bad}
		a := campaign(c, line, "a")
		synctest.Wait()
		b := campaign(c, c.Admin(), "b")
		line.unplugged.Store(true)
		pass(RenewEvery + RetryEvery - time.Second)
		line.unplugged.Store(false)
		pass(10 * Duration)
		if !a.leads.Load() || b.leads.Load() {
			t.Fatal("it was lost")
		}
	})
}

// A holder that is told to stop releases the Lease after its work has ended, and the next one takes it at its next
// look.
func TestHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := ct.New(t)
		a := campaign(c, c.Admin(), "a")
		synctest.Wait()
		b := campaign(c, c.Admin(), "b")
		pass(5 * Duration)
		if !a.leads.Load() || b.leads.Load() || !b.standby.Load() {
			t.Fatal("a does not lead alone")
		}
		a.stop()
		if err := <-a.ended; !errors.Is(err, context.Canceled) {
			t.Fatalf("it ended with %v", err)
		}
		if got := holder(c); got != "" {
			t.Fatalf("it belongs to %q", got)
		}
		pass(RetryEvery)
		if !b.leads.Load() || holder(c) != "b" {
			t.Fatal("b did not take it")
		}
	})
}

// Whatever the network does, two never lead at once; and when it is well again, one does.
func TestNeverTwo(t *testing.T) {
	for seed := range int64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := ct.New(t)
				rates := faulty.Rates{Drop: 0.3, Lose: 0.2, Conflict: 0.1, Repeat: 0.1, Delay: 0.5, MaxDelay: 8 * time.Second}
				var lines []*faulty.Client
				var leading, terms atomic.Int32
				for i, id := range []string{"a", "b", "c"} {
					line := faulty.New(c.Admin(), rates, 3*seed+int64(i))
					lines = append(lines, line)
					go func() {
						for c.Context().Err() == nil {
							e := Elector{Client: line, Namespace: metav1.NamespaceDefault, Name: "test", Identity: id}
							e.Run(c.Context(), func(ctx context.Context) error { //nolint:errcheck // it is run again
								if leading.Add(1) > 1 {
									t.Errorf("%s begins while another leads", id)
								}
								terms.Add(1)
								<-ctx.Done()
								leading.Add(-1)
								return nil
							})
						}
					}()
				}
				pass(20 * time.Minute)
				for _, l := range lines {
					l.Heal()
				}
				pass(3 * Duration)
				if leading.Load() != 1 {
					t.Errorf("%d lead in the end", leading.Load())
				}
				if terms.Load() < 2 {
					t.Errorf("%d terms: the faults did nothing", terms.Load())
				}
			})
		})
	}
}
