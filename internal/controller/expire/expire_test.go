package expire

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/faulty"
	ct "minik8s/internal/controller/controllertest"
)

// The tests run in a bubble of package synctest, where an hour passes as soon as everybody waits for it.

func event(c *ct.Cluster, name string) *corev1.Event {
	return ct.Create(c, &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: name}, Reason: "Test",
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: metav1.NamespaceDefault, Name: "p"}})
}

// again is what a recorder does when an event happens once more.
func again(t *testing.T, c client.Interface, ev *corev1.Event) {
	t.Helper()
	upd := ev.DeepCopy()
	upd.Count, upd.LastTimestamp, upd.ResourceVersion = upd.Count+1, metav1.Now(), ""
	if _, err := c.Update(context.Background(), upd, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func names(t *testing.T, c *ct.Cluster) []string {
	t.Helper()
	list, err := c.Admin().List(c.Context(), api.Events, client.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range list.Items {
		out = append(out, e.GetName())
	}
	return out
}

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// Events go when they have not happened for an hour, and not before.
func TestOldEventsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := ct.New(t)
		event(c, "old")
		repeated := event(c, "repeated")
		c.Start(New(c.As("event-expiry"), slog.New(slog.DiscardHandler)).Run)
		pass(TTL / 2)
		event(c, "young")
		again(t, c.Admin(), repeated)
		pass(TTL/2 - time.Second)
		if got := names(t, c); len(got) != 3 {
			t.Errorf("too early: %v are left", got)
		}
		pass(batch + time.Second)
		if got := names(t, c); !slices.Equal(got, []string{"repeated", "young"}) {
			t.Errorf("after an hour %v are left", got)
		}
		pass(TTL)
		if got := names(t, c); len(got) != 0 {
			t.Errorf("in the end %v are left", got)
		}
	})
}

// Of too many events the oldest go, long before their time.
func TestTooManyEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := ct.New(t)
		c.Start(New(c.As("event-expiry"), slog.New(slog.DiscardHandler)).Run)
		pass(time.Minute)
		event(c, "first")
		pass(time.Second)
		for i := range most + most/5 - 2 {
			event(c, fmt.Sprint("e", i))
		}
		pass(time.Second)
		if got := names(t, c); len(got) != most+most/5-1 {
			t.Errorf("%d of a few too many are left", len(got))
		}
		event(c, "last")
		pass(time.Second)
		if got := names(t, c); len(got) != most || slices.Contains(got, "first") || !slices.Contains(got, "last") {
			t.Errorf("%d are left", len(got))
		}
	})
}

// Failures do not keep the other events, and pass.
func TestGoInSpiteOfFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := ct.New(t)
		const many = 50
		for i := range many {
			event(c, fmt.Sprint("e", i))
		}
		shaky := faulty.New(c.As("event-expiry"), faulty.Rates{Drop: 0.3, Lose: 0.2, Conflict: 0.2, Repeat: 0.2}, 1)
		c.Start(New(shaky, slog.New(slog.DiscardHandler)).Run)
		pass(TTL + 4*batch)
		if left := len(names(t, c)); left > many/2 {
			t.Errorf("%d of %d are left", left, many)
		}
		shaky.Heal()
		pass(batch)
		if left := names(t, c); len(left) > 0 {
			t.Errorf("%v are left", left)
		}
	})
}

// meanwhile does something between the list and the deletion.
type meanwhile struct {
	client.Interface
	do func()
}

func (m meanwhile) Delete(ctx context.Context, key client.Key, opts *metav1.DeleteOptions) (api.Object, error) {
	m.do()
	return m.Interface.Delete(ctx, key, opts)
}

// An event that happens again while it is being removed is not old.
func TestHappensAgainMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := ct.New(t)
		ev := event(c, "back")
		cl := meanwhile{c.As("event-expiry"), func() { again(t, c.Admin(), ev) }}
		c.Start(New(cl, slog.New(slog.DiscardHandler)).Run)
		pass(TTL + time.Minute)
		if got := names(t, c); len(got) != 1 {
			t.Error("it was removed all the same")
		}
	})
}

func TestLast(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(at(1))}}
	for _, set := range []func(t time.Time){
		func(t time.Time) { e.FirstTimestamp = metav1.NewTime(t) },
		func(t time.Time) { e.LastTimestamp = metav1.NewTime(t) },
		func(t time.Time) { e.EventTime = metav1.NewMicroTime(t) },
		func(t time.Time) { e.Series = &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(t)} },
	} {
		next := Last(e).Add(time.Second)
		if set(next); !Last(e).Equal(next) {
			t.Errorf("%v is not the last of %+v", Last(e), e)
		}
	}
}
