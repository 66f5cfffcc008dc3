package work

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// queued waits until so many wait for a turn.
func (l *Limit) queued(t *testing.T, n int) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		l.mu.Lock()
		have := 0
		for p := range l.waiting {
			have += l.waiting[p].Len()
		}
		l.mu.Unlock()
		if have == n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d wait, not %d", have, n)
		}
	}
}

// Turns come by priority, and within one in order; who gives up is left out.
func TestTurns(t *testing.T) {
	l := New(1)
	if err := l.Acquire(t.Context(), Background); err != nil {
		t.Fatal(err)
	}
	var order []string
	var mu sync.Mutex
	var all sync.WaitGroup
	gone, giveUp := context.WithCancel(t.Context())
	n := 0
	wait := func(ctx context.Context, p Priority, name string) {
		all.Go(func() {
			if l.Acquire(ctx, p) != nil {
				return
			}
			mu.Lock()
			order = append(order, name)
			mu.Unlock()
			l.Release()
		})
		n++
		l.queued(t, n)
	}
	wait(t.Context(), Background, "repair")
	wait(t.Context(), Sandbox, "first sandbox")
	wait(gone, Container, "gone")
	wait(t.Context(), Sandbox, "second sandbox")
	wait(t.Context(), Container, "container")
	giveUp()
	l.queued(t, n-1)
	l.Release()
	all.Wait()
	if want := []string{"container", "first sandbox", "second sandbox", "repair"}; !slices.Equal(order, want) {
		t.Errorf("%q", order)
	}
	if l.free != 1 {
		t.Errorf("%d turns are free", l.free)
	}
	if err := l.Acquire(gone, Container); err == nil {
		t.Error("a turn for one who has given up")
	}
}

// Never are there more turns than allowed, and none is lost, whoever gives up when.
func TestNoTurnIsLost(t *testing.T) {
	l := New(3)
	var at atomic.Int32
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			for j := range 50 {
				ctx, cancel := context.WithCancel(t.Context())
				if (i+j)%3 == 0 {
					go cancel()
				}
				if l.Acquire(ctx, Priority(i%int(priorities))) == nil {
					if at.Add(1) > 3 {
						t.Error("too many")
					}
					at.Add(-1)
					l.Release()
				}
				cancel()
			}
		})
	}
	all.Wait()
	if l.free != 3 {
		t.Errorf("%d turns are free", l.free)
	}
}
