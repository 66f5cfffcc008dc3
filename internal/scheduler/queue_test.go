package scheduler

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/scheduler/plan"
)

var t0 = time.Unix(1_000_000, 0)

func queued(q *queue, name string, priority int32, age time.Duration, generation int64) *entry {
	obj := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Generation: generation,
		CreationTimestamp: metav1.NewTime(t0.Add(-age))}}
	if priority != 0 {
		obj.Spec.Priority = &priority
	}
	return q.add(plan.New(1).Pod(obj))
}

func TestQueueOrder(t *testing.T) {
	q := newQueue()
	queued(q, "young", 0, time.Second, 1)
	queued(q, "old", 0, time.Minute, 1)
	queued(q, "important", 5, 0, 1)
	queued(q, "old too", 0, time.Minute, 1)
	queued(q, "dropped", 9, 0, 1)
	q.drop("dropped")
	for _, want := range []string{"important", "old", "old too", "young"} {
		if e := q.pop(); e == nil || e.pod.Obj.Name != want {
			t.Fatalf("got %+v, want %s", e, want)
		}
	}
	if q.pop() != nil {
		t.Error("the queue is not empty")
	}
}

func TestQueueRest(t *testing.T) {
	q, now := newQueue(), t0
	queued(q, "p", 0, 0, 1)
	for i, want := range []time.Duration{0, 1, 2, 4, 8, 10, 10} {
		e := q.pop()
		if e == nil {
			t.Fatalf("failure %d: it is not due", i)
		}
		q.park(e, plan.ByFit, now)
		q.wake(e, now)
		if want > 0 {
			if q.pop() != nil {
				t.Fatalf("failure %d: it does not rest", i)
			}
			if got := q.next().Sub(now); got != want*time.Second {
				t.Errorf("failure %d: rests %v, want %v s", i, got, want)
			}
			now = q.next()
			q.release(now)
		}
	}
	// A new specification starts over.
	q.park(q.pop(), plan.ByFit, now)
	if e := queued(q, "p", 0, 0, 2); e.place != active || e.failures != 0 {
		t.Errorf("%+v", e)
	}
}

func TestQueueOwnStatusIsNoNews(t *testing.T) {
	q := newQueue()
	queued(q, "p", 0, 0, 1)
	q.park(q.pop(), plan.ByFit, t0)
	if e := queued(q, "p", 0, 0, 1); e.place != parked {
		t.Errorf("place %d", e.place)
	}
}

func TestQueueFlush(t *testing.T) {
	q := newQueue()
	if !q.next().IsZero() {
		t.Error("an empty queue has no next time")
	}
	queued(q, "a", 0, 0, 1)
	queued(q, "b", 0, 0, 1)
	q.park(q.pop(), plan.ByFit, t0)
	q.park(q.pop(), plan.ByFit, t0.Add(time.Minute))
	if got := q.next(); !got.Equal(t0.Add(flushEvery)) {
		t.Errorf("next %v", got)
	}
	q.release(t0.Add(flushEvery))
	if e := q.pop(); e == nil || e.pod.Obj.Name != "a" || q.pop() != nil {
		t.Errorf("flushed %+v", e)
	}
	if got := q.next(); !got.Equal(t0.Add(time.Minute + flushEvery)) {
		t.Errorf("next %v", got)
	}
	q.drop("b")
	if !q.next().IsZero() {
		t.Error("nothing waits any more")
	}
}

func TestHints(t *testing.T) {
	for _, test := range []struct {
		causes  plan.Cause
		changes changes
		want    bool
	}{
		{plan.ByFit, changes{placed: true, removed: true, nodes: plan.Opened}, false}, // asked of the one node instead
		{plan.ByAntiAffinity, changes{placed: true}, false},
		{plan.ByAntiAffinity, changes{removed: true}, true},
		{plan.ByAffinity, changes{removed: true}, true}, // it may be the first of its kind now
		{plan.ByAffinity, changes{placed: true}, true},
		{plan.ByAffinity | plan.ByFit, changes{namespaces: true}, true},
		{plan.BySpread, changes{namespaces: true}, false},
		{plan.BySpread, changes{nodeRemoved: true}, true},
		{plan.BySpread, changes{nodes: plan.Grew}, false},
		{plan.ByAntiAffinity, changes{nodes: plan.Labelled}, true},
	} {
		if got := test.changes.mayHelp(test.causes); got != test.want {
			t.Errorf("%b, %+v: %v", test.causes, test.changes, got)
		}
	}
}
