package leader_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/faulty"
	"minik8s/internal/controller/controllertest"
)

// written is one change, in the store's order: of the Lease, or of a note that says under which Lease it was made.
type written struct {
	revision int64
	lease    string // its version; empty if it was deleted
	note     string // the version of the Lease by which the writer leads
}

// audit collects what is written to Leases and ConfigMaps until ctx ends.
func audit(ctx context.Context, t *testing.T, c *controllertest.Cluster) func() []written {
	out := make(chan []written, 2)
	for _, kind := range []*api.Kind{api.Leases, api.ConfigMaps} {
		w, err := c.Admin().Watch(ctx, kind, client.WatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			var all []written
			for e := range w.Events() {
				if e.Object == nil {
					continue
				}
				at, err := strconv.ParseInt(e.ResourceVersion, 10, 64)
				if err != nil {
					t.Error(err)
				}
				x := written{revision: at}
				switch obj := e.Object.(type) {
				case *coordinationv1.Lease:
					if e.Type != client.Deleted {
						x.lease = obj.ResourceVersion
					}
				case *corev1.ConfigMap:
					x.note = obj.Annotations["lease"]
				}
				all = append(all, x)
			}
			out <- all
		}()
	}
	return func() []written {
		all := append(<-out, <-out...)
		slices.SortFunc(all, func(a, b written) int { return cmp.Compare(a.revision, b.revision) })
		return all
	}
}

// Whatever the members believe, whatever the network does to them and users do to the Lease, each write that is
// accepted is of who wrote the Lease last. When all is well again, one leads and writes.
func TestOnlyTheLastLeaderWrites(t *testing.T) {
	for seed := range int64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := controllertest.New(t)
				rates := faulty.Rates{Drop: 0.2, Lose: 0.1, Conflict: 0.1, Repeat: 0.1, Delay: 0.5, MaxDelay: 3 * time.Second}
				watching, enough := context.WithCancel(c.Context())
				report := audit(watching, t, c)
				var members []*member
				var lines []*faulty.Client
				for i, id := range []string{"a", "b", "c"} {
					line := faulty.New(c.Admin(), rates, 10*seed+int64(i))
					lines = append(lines, line)
					members = append(members, begin(c, line, believing(i == 0), id, func(ctx context.Context, m *member, led client.Interface) error {
						bad := faulty.New(led, rates, seed+names.Add(1))
						by := m.term.Load().Lease.ResourceVersion
						for ctx.Err() == nil {
							// A write may be under way for a while after the term, as those of parts that hang are.
							go noteOf(context.WithoutCancel(ctx), bad, by) //nolint:errcheck // the audit sees what was written
							<-time.After(300 * time.Millisecond)
						}
						return ctx.Err()
					}))
				}
				rng := rand.New(rand.NewSource(seed))
				for range 200 {
					pass(time.Duration(rng.Intn(2000)) * time.Millisecond)
					switch rng.Intn(8) {
					case 0:
						c.Admin().Delete(c.Context(), key, nil) //nolint:errcheck // it may be gone
					default: // a new leader, of which the old one may not hear
						for _, m := range members {
							if rng.Intn(3) > 0 {
								m.set(rng.Intn(2) == 0)
							}
						}
					}
				}
				for i, m := range members {
					lines[i].Heal()
					m.set(i == 1)
				}
				pass(time.Minute)
				for i, m := range members {
					if m.leading() != (i == 1) {
						t.Errorf("in the end %s leads: %v", m.Identity, m.leading())
					}
				}
				says := lease(t, c).ResourceVersion
				enough()
				var last string
				notes, leases, inLast := 0, 0, 0
				for _, x := range report() {
					switch {
					case x.note == "":
						last = x.lease
						leases++
					case x.note != last:
						t.Fatalf("at revision %d one who leads by the Lease's version %s wrote, while it was at %q", x.revision, x.note, last)
					default:
						notes++
						if x.note == says {
							inLast++
						}
					}
				}
				if notes < 100 || leases < 20 || inLast < 10 {
					t.Errorf("%d Leases, %d notes, %d of them by the last: too little has happened", leases, notes, inLast)
				}
				for _, m := range members {
					m.stop()
					<-m.ended
				}
				pass(time.Minute) // what is still under way
			})
		})
	}
}

// noteOf writes something that says under which version of the Lease.
func noteOf(ctx context.Context, c client.Interface, lease string) error {
	obj := &corev1.ConfigMap{}
	obj.Namespace, obj.Name = "default", fmt.Sprint("note-", names.Add(1))
	obj.Annotations = map[string]string{"lease": lease}
	_, err := c.Create(ctx, obj, client.WriteOptions{})
	return err
}
