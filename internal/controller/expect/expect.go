// Package expect remembers what a controller has just done and not yet seen in its watch, so that a
// slow watch never makes it do the same twice.
//
// It promises: between Creates or Deletes and the moment in which everything they announced was
// observed, Settled says no. An expectation that is never met (a lost write) ends after Timeout: better
// to look again than to stand still.
//
// Controllers use it around their writes: announce before, call Created or Deleted from the informer's
// handler, and also when a write failed. It holds memory only; after a kill -9 the first list is
// complete, and nothing is expected.
package expect

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/controller/loop"
)

// Timeout is how long an expectation is believed; the same as Kubernetes'.
const Timeout = 5 * time.Minute

// Tracker holds the expectations of one controller. Make it with New.
type Tracker struct {
	now func() time.Time
	mu  sync.Mutex
	of  map[loop.Key]*expectation
}

type expectation struct {
	creates int
	deletes map[types.UID]struct{}
	at      time.Time
}

// New makes a tracker; now is its clock.
func New(now func() time.Time) *Tracker {
	return &Tracker{now: now, of: map[loop.Key]*expectation{}}
}

func (t *Tracker) get(owner loop.Key) *expectation {
	e := t.of[owner]
	if e == nil {
		e = &expectation{deletes: map[types.UID]struct{}{}}
		t.of[owner] = e
	}
	e.at = t.now()
	return e
}

// Creates announces n new dependents of an owner.
func (t *Tracker) Creates(owner loop.Key, n int) {
	if n <= 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.get(owner).creates += n
}

// Deletes announces that dependents will go.
func (t *Tracker) Deletes(owner loop.Key, uids ...types.UID) {
	if len(uids) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.get(owner)
	for _, uid := range uids {
		e.deletes[uid] = struct{}{}
	}
}

// Created notes that a new dependent was seen, or n that they will not come.
func (t *Tracker) Created(owner loop.Key, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.of[owner]; e != nil {
		e.creates = max(e.creates-n, 0)
		t.tidy(owner, e)
	}
}

// Deleted notes that a dependent is going, or that it will not.
func (t *Tracker) Deleted(owner loop.Key, uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.of[owner]; e != nil {
		delete(e.deletes, uid)
		t.tidy(owner, e)
	}
}

func (t *Tracker) tidy(owner loop.Key, e *expectation) {
	if e.creates == 0 && len(e.deletes) == 0 {
		delete(t.of, owner)
	}
}

// Settled says that the controller's view holds everything it has done for an owner. If it does not,
// wait is when the expectation ends at the latest.
func (t *Tracker) Settled(owner loop.Key) (ok bool, wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.of[owner]
	if e == nil {
		return true, 0
	}
	if wait = Timeout - t.now().Sub(e.at); wait <= 0 {
		delete(t.of, owner)
		return true, 0
	}
	return false, wait
}

// Forget drops what was expected for an owner that is no more.
func (t *Tracker) Forget(owner loop.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, owner)
}
