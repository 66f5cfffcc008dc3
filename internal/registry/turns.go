package registry

import (
	"context"
	"slices"
	"sync"
)

// turns lets writes of the same group (Strategy.Exclusive) go one after the other. The store takes only one of those that run at
// the same time, and the work of admitting the others would be in vain. It promises nothing to who writes through another
// master: there the store's transaction decides.
type turns struct {
	mu sync.Mutex
	of map[string]*turn // by the group
}

type turn struct {
	has   chan struct{} // holds one value while somebody has the turn
	users int           // who has it, and those who wait
}

// take waits for the turns of all groups. The error is ctx's; else done gives them back.
func (t *turns) take(ctx context.Context, groups []string) (done func(), err error) {
	groups = slices.Compact(slices.Sorted(slices.Values(groups))) // in one order, or two could wait for each other
	for i, g := range groups {
		if err := t.one(ctx, g); err != nil {
			t.give(groups[:i])
			return nil, err
		}
	}
	return func() { t.give(groups) }, nil
}

func (t *turns) one(ctx context.Context, group string) error {
	t.mu.Lock()
	x := t.of[group]
	if x == nil {
		x = &turn{has: make(chan struct{}, 1)}
		if t.of == nil {
			t.of = map[string]*turn{}
		}
		t.of[group] = x
	}
	x.users++
	t.mu.Unlock()
	select {
	case x.has <- struct{}{}:
		return nil
	case <-ctx.Done():
		t.leave(group)
		return context.Cause(ctx)
	}
}

func (t *turns) give(groups []string) {
	for _, g := range groups {
		t.mu.Lock()
		x := t.of[g]
		t.mu.Unlock()
		<-x.has
		t.leave(g)
	}
}

// leave forgets a group that nobody uses any more.
func (t *turns) leave(group string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.of[group]; x.users == 1 {
		delete(t.of, group)
	} else {
		x.users--
	}
}
