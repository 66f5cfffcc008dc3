package leader

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	ct "minik8s/internal/controller/controllertest"
)

// clock is a time that moves when somebody sleeps.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return ctx.Err()
}

func elector(c *ct.Cluster, at *clock, id string) *Elector {
	return &Elector{Client: c.Admin(), Namespace: metav1.NamespaceDefault, Name: "test", Identity: id, Now: at.Now, Sleep: at.Sleep}
}

func holder(c *ct.Cluster) string {
	l, err := client.Get[*coordinationv1.Lease](c.Context(), c.Admin(), client.Key{Kind: api.Leases, Namespace: metav1.NamespaceDefault, Name: "test"})
	if err != nil || l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}

func TestTakesAFreeLeaseAtOnceAndGivesItBack(t *testing.T) {
	c, at := ct.New(t), &clock{now: time.Unix(1000, 0)}
	failed := errors.New("as it should")
	err := elector(c, at, "a").Run(c.Context(), func(context.Context) error {
		if got := holder(c); got != "a" {
			t.Errorf("the holder is %q", got)
		}
		return failed
	})
	if !errors.Is(err, failed) && !errors.Is(err, ErrLost) {
		t.Errorf("got %v", err)
	}
}

func TestWaitsForAnother(t *testing.T) {
	c, at := ct.New(t), &clock{now: time.Unix(1000, 0)}
	first := elector(c, at, "a")
	first.fill()
	if held, err := first.try(c.Context()); !held || err != nil {
		t.Fatal(held, err)
	}
	second := elector(c, at, "b")
	second.fill()
	if held, _ := second.try(c.Context()); held {
		t.Fatal("two hold it")
	}
	at.now = at.now.Add(Duration - time.Second)
	if held, _ := second.try(c.Context()); held {
		t.Fatal("it was taken too early")
	}
	if held, err := first.try(c.Context()); !held || err != nil {
		t.Fatal("it was not renewed", err)
	}
	at.now = at.now.Add(2 * time.Second)
	if held, _ := second.try(c.Context()); held {
		t.Fatal("it was taken although it had been renewed")
	}
	at.now = at.now.Add(Duration)
	if held, err := second.try(c.Context()); !held || err != nil {
		t.Fatal("it was not taken when it had run out", err)
	}
	if held, _ := first.try(c.Context()); held || holder(c) != "b" {
		t.Fatal("the first did not notice")
	}
	// The same identity after a restart does not wait.
	again := elector(c, at, "b")
	again.fill()
	if held, err := again.try(c.Context()); !held || err != nil {
		t.Fatal(held, err)
	}
	again.release(c.Context())
	if held, err := first.try(c.Context()); !held || err != nil {
		t.Fatal("it was given back and not taken", err)
	}
}
