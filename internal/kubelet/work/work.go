// Package work decides who uses the processors next. Making a container is work for them, so a hundred pods that are begun at
// once are all ready later, and the first of them much later, than when only a few are worked on at a time. Of those who wait,
// what is nearest to a running pod goes first: a container's start before another pod's sandbox, and that before a third one's
// volumes.
//
// Who calls it: roles makes one Limit for the kubelet and the runtime, which take turns by it. Nothing of it survives the process.
package work

import (
	"container/list"
	"context"
	"runtime"
	"sync"
)

// Priority is how soon a turn comes, among those who wait. Within one, turns come in order.
type Priority int

// The priorities, highest first.
const (
	Container  Priority = iota // making and starting a container
	Sandbox                    // making a sandbox
	Prepare                    // making volumes and cgroups
	Background                 // what nobody waits for
	priorities
)

// Limit has so many turns at a time. Its methods are safe for concurrent use.
type Limit struct {
	mu      sync.Mutex
	free    int
	waiting [priorities]list.List // of chan struct{}, which is closed when the turn has come
}

// Turns is how many there should be at a time. A part of each is waiting, for the kernel or a disk, so there are more than
// processors.
func Turns() int { return 2 * runtime.GOMAXPROCS(0) }

// New makes a Limit of n turns at a time.
func New(n int) *Limit { return &Limit{free: n} }

// Acquire waits for a turn; Release ends it. The error is that of ctx.
func (l *Limit) Acquire(ctx context.Context, p Priority) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	if l.free > 0 {
		l.free--
		l.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	place := l.waiting[p].PushBack(turn)
	l.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-turn: // it came meanwhile
		l.pass()
	default:
		l.waiting[p].Remove(place)
	}
	return ctx.Err()
}

// Release ends a turn.
func (l *Limit) Release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pass()
}

// pass gives a turn that has ended to the next one. The caller holds mu.
func (l *Limit) pass() {
	for p := range l.waiting {
		if first := l.waiting[p].Front(); first != nil {
			close(l.waiting[p].Remove(first).(chan struct{}))
			return
		}
	}
	l.free++
}
