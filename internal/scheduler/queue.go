package scheduler

import (
	"container/heap"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/scheduler/plan"
)

const (
	// A pod that fits nowhere is tried again as soon as something could help; the second time that it
	// was in vain it rests first: a second, doubling to ten.
	minRest = time.Second
	maxRest = 10 * time.Second
	// flushEvery is when a parked pod is tried again though nothing is known that would help it.
	flushEvery = 5 * time.Minute
)

// place is where in the queue a pod is.
type place int

const (
	gone    place = iota
	active        // to be decided
	resting       // to be decided at due
	parked        // fits nowhere until something changes
)

// entry is a pod without a node.
type entry struct {
	pod      *plan.Pod
	priority int32
	created  int64 // seconds
	order    uint64

	place    place
	slot     int // in its heap
	due      time.Time
	failures int
	parkedAt time.Time
	causes   plan.Cause
	told     *plan.Refusal // why it has no node, as last written on it; nil: nothing was
	untold   bool          // that writing failed
}

// queue is the pods without a node. It is for one goroutine and has no clock.
type queue struct {
	all     map[types.UID]*entry
	active  byTurn
	resting byDue
	parked  map[types.UID]*entry
	order   uint64
	flushAt time.Time // zero: nothing is parked
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

// leave takes an entry out of the place where it is.
func (q *queue) leave(e *entry) {
	switch e.place {
	case active:
		heap.Remove(&q.active, e.slot)
	case resting:
		heap.Remove(&q.resting, e.slot)
	case parked:
		delete(q.parked, e.pod.Obj.UID)
		if len(q.parked) == 0 {
			q.flushAt = time.Time{}
		}
	}
	e.place = gone
}

func (q *queue) activate(e *entry) {
	e.place = active
	heap.Push(&q.active, e)
}

// pop takes the next pod to decide; nil if there is none. It stays known until drop, park or rest.
func (q *queue) pop() *entry {
	if len(q.active) == 0 {
		return nil
	}
	e := heap.Pop(&q.active).(*entry)
	e.place = gone
	return e
}

// park puts a pod that fits nowhere aside.
func (q *queue) park(e *entry, causes plan.Cause, now time.Time) {
	e.failures++
	e.place, e.causes, e.parkedAt = parked, causes, now
	e.due = now.Add(rest(e.failures - 1))
	q.parked[e.pod.Obj.UID] = e
	if q.flushAt.IsZero() {
		q.flushAt = now.Add(flushEvery)
	}
}

// pause lets a pod come again after a rest, because a write for it failed.
func (q *queue) pause(e *entry, now time.Time) {
	e.failures++
	e.place, e.due = resting, now.Add(rest(e.failures))
	heap.Push(&q.resting, e)
}

// rest is how long a pod waits after so many failures.
func rest(failures int) time.Duration {
	if failures <= 0 {
		return 0
	}
	return min(minRest<<min(failures-1, 8), maxRest)
}

// wake has a parked pod decided again, at once or when it has rested.
func (q *queue) wake(e *entry, now time.Time) {
	q.leave(e)
	if e.due.After(now) {
		e.place = resting
		heap.Push(&q.resting, e)
		return
	}
	q.activate(e)
}

// release moves the pods whose time has come to those that are decided.
func (q *queue) release(now time.Time) {
	for len(q.resting) > 0 && !q.resting[0].due.After(now) {
		e := heap.Pop(&q.resting).(*entry)
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

// next is when release has something to do; zero: never, as things stand.
func (q *queue) next() time.Time {
	at := q.flushAt
	if len(q.resting) > 0 && (at.IsZero() || q.resting[0].due.Before(at)) {
		at = q.resting[0].due
	}
	return at
}

// byTurn is a heap: higher priority first, then the older pod, then the one that came first.
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

// byDue is a heap: the one whose time comes first is first.
type byDue []*entry

func (h byDue) Len() int           { return len(h) }
func (h byDue) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h byDue) Swap(i, j int)      { h[i], h[j] = h[j], h[i]; h[i].slot, h[j].slot = i, j }
func (h *byDue) Push(x any)        { *h = push(*h, x.(*entry)) }
func (h *byDue) Pop() any          { var e *entry; *h, e = pop(*h); return e }

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
