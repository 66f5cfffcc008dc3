package scheduler

import (
	"container/heap"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/scheduler/plan"
)

const (
	// A pod that fits nowhere is tried again as soon as something changes that could help. From the second failure on
	// it backs off first: one second, doubling to ten, as in Kubernetes (pkg/scheduler/backend/queue).
	minBackoff = time.Second
	maxBackoff = 10 * time.Second
	// flushEvery is after how long a parked pod is tried again although nothing has changed that would help it.
	flushEvery = 5 * time.Minute
)

// place is the part of the queue that a pod is in. Kubernetes calls them activeQ, backoffQ and unschedulablePods.
type place int

const (
	unqueued   place = iota
	active           // to be decided
	backingOff       // in back-off: to be decided at retryAt
	parked           // fits nowhere until something changes
)

// entry is a pod without a node.
type entry struct {
	pod      *plan.Pod
	priority int32
	created  int64 // seconds
	order    uint64

	place       place
	slot        int // in its heap
	retryAt     time.Time
	failures    int
	parkedAt    time.Time
	causes      plan.Cause
	reported    *plan.Refusal // why it has no node, as last written to its status; nil: not written
	writeFailed bool          // the last write of it failed
}

// queue holds the pods without a node. Only one goroutine may use it. It has no clock: times are passed in.
type queue struct {
	all        map[types.UID]*entry
	active     byTurn
	backingOff byRetryTime
	parked     map[types.UID]*entry
	order      uint64
	flushAt    time.Time // zero: nothing is parked
}

func newQueue() *queue {
	return &queue{all: map[types.UID]*entry{}, parked: map[types.UID]*entry{}}
}

// add puts a new pod into the queue, or gives a known one its newest state. A pod whose specification
// or labels changed starts over.
func (q *queue) add(p *plan.Pod) *entry {
	obj := p.Obj
	e := q.all[obj.UID]
	if e == nil {
		q.order++
		e = &entry{order: q.order}
		q.all[obj.UID] = e
	} else if was := e.pod.Obj; was.Generation == obj.Generation && e.priority == priorityOf(p) && maps.Equal(was.Labels, obj.Labels) {
		e.pod = p
		return e
	} else {
		q.leave(e)
		e.failures = 0
	}
	e.pod, e.priority, e.created = p, priorityOf(p), obj.CreationTimestamp.Unix()
	q.activate(e)
	return e
}

func priorityOf(p *plan.Pod) int32 {
	if v := p.Obj.Spec.Priority; v != nil {
		return *v
	}
	return 0
}

// drop forgets a pod.
func (q *queue) drop(uid types.UID) {
	if e := q.all[uid]; e != nil {
		q.leave(e)
		delete(q.all, uid)
	}
}

// leave takes an entry out of the place that it is in.
func (q *queue) leave(e *entry) {
	switch e.place {
	case active:
		heap.Remove(&q.active, e.slot)
	case backingOff:
		heap.Remove(&q.backingOff, e.slot)
	case parked:
		delete(q.parked, e.pod.Obj.UID)
		if len(q.parked) == 0 {
			q.flushAt = time.Time{}
		}
	}
	e.place = unqueued
}

func (q *queue) activate(e *entry) {
	e.place = active
	heap.Push(&q.active, e)
}

// pop takes the next pod to decide; nil if there is none. It stays known to the queue until drop, park or backOff.
func (q *queue) pop() *entry {
	if len(q.active) == 0 {
		return nil
	}
	e := heap.Pop(&q.active).(*entry)
	e.place = unqueued
	return e
}

// park puts a pod that fits nowhere aside.
func (q *queue) park(e *entry, causes plan.Cause, now time.Time) {
	e.failures++
	e.place, e.causes, e.parkedAt = parked, causes, now
	e.retryAt = now.Add(backoff(e.failures - 1))
	q.parked[e.pod.Obj.UID] = e
	if q.flushAt.IsZero() {
		q.flushAt = now.Add(flushEvery)
	}
}

// backOff queues a pod again after a back-off, because a write for it failed.
func (q *queue) backOff(e *entry, now time.Time) {
	e.failures++
	e.place, e.retryAt = backingOff, now.Add(backoff(e.failures))
	heap.Push(&q.backingOff, e)
}

// backoff is how long a pod waits after so many failures.
func backoff(failures int) time.Duration {
	if failures <= 0 {
		return 0
	}
	return min(minBackoff<<min(failures-1, 8), maxBackoff)
}

// wake queues a parked pod again: at once, or when its back-off has ended.
func (q *queue) wake(e *entry, now time.Time) {
	q.leave(e)
	if e.retryAt.After(now) {
		e.place = backingOff
		heap.Push(&q.backingOff, e)
		return
	}
	q.activate(e)
}

// release makes the pods active whose back-off has ended, or that were parked for flushEvery.
func (q *queue) release(now time.Time) {
	for len(q.backingOff) > 0 && !q.backingOff[0].retryAt.After(now) {
		e := heap.Pop(&q.backingOff).(*entry)
		q.activate(e)
	}
	if q.flushAt.IsZero() || q.flushAt.After(now) {
		return
	}
	next := time.Time{}
	for _, e := range q.parked {
		if at := e.parkedAt.Add(flushEvery); at.After(now) {
			if next.IsZero() || at.Before(next) {
				next = at
			}
			continue
		}
		q.wake(e, now)
	}
	q.flushAt = next
}

// next is when release next has something to do; zero: not before something changes.
func (q *queue) next() time.Time {
	at := q.flushAt
	if len(q.backingOff) > 0 && (at.IsZero() || q.backingOff[0].retryAt.Before(at)) {
		at = q.backingOff[0].retryAt
	}
	return at
}

// byTurn is a heap: higher priority first, then the older pod, then the one that was queued first.
type byTurn []*entry

func (h byTurn) Len() int { return len(h) }
func (h byTurn) Less(i, j int) bool {
	a, b := h[i], h[j]
	switch {
	case a.priority != b.priority:
		return a.priority > b.priority
	case a.created != b.created:
		return a.created < b.created
	}
	return a.order < b.order
}
func (h byTurn) Swap(i, j int) { h[i], h[j] = h[j], h[i]; h[i].slot, h[j].slot = i, j }
func (h *byTurn) Push(x any)   { *h = push(*h, x.(*entry)) }
func (h *byTurn) Pop() any     { var e *entry; *h, e = pop(*h); return e }

// byRetryTime is a heap ordered by retryAt.
type byRetryTime []*entry

func (h byRetryTime) Len() int           { return len(h) }
func (h byRetryTime) Less(i, j int) bool { return h[i].retryAt.Before(h[j].retryAt) }
func (h byRetryTime) Swap(i, j int)      { h[i], h[j] = h[j], h[i]; h[i].slot, h[j].slot = i, j }
func (h *byRetryTime) Push(x any)        { *h = push(*h, x.(*entry)) }
func (h *byRetryTime) Pop() any          { var e *entry; *h, e = pop(*h); return e }

func push(list []*entry, e *entry) []*entry {
	e.slot = len(list)
	return append(list, e)
}

func pop(list []*entry) ([]*entry, *entry) {
	last := len(list) - 1
	e := list[last]
	list[last] = nil
	return list[:last], e
}
