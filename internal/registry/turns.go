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
	// revision is that of the group's key after the last write, for who waits: it need not be read then. 0: not known.
	revision int64
}

// held are turns that a request has.
type held struct {
	of     *turns
	groups []string
	wrote  int64 // the revision of the write; 0: there was none
}

// take waits for the turns of all groups. The error is ctx's.
func (t *turns) take(ctx context.Context, groups []string) (*held, error) {
	groups = slices.Compact(slices.Sorted(slices.Values(groups))) // in one order, or two could wait for each other
	for i, g := range groups {
		if err := t.one(ctx, g); err != nil {
			(&held{of: t, groups: groups[:i]}).end()
			return nil, err
		}
	}
	return &held{of: t, groups: groups}, nil
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
		t.mu.Lock()
		defer t.mu.Unlock()
		t.leave(group)
		return context.Cause(ctx)
	}
}

// leave forgets a group that nobody uses any more. The caller has locked t.
func (t *turns) leave(group string) {
	if x := t.of[group]; x.users > 1 {
		x.users--
	} else {
		delete(t.of, group)
	}
}

// revision is that of a group's key; 0: it has to be read.
func (h *held) revision(group string) int64 {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	return h.of.of[group].revision
}

// end gives the turns to those who wait.
func (h *held) end() {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	for _, g := range h.groups {
		x := h.of.of[g]
		x.revision = h.wrote
		<-x.has
		h.of.leave(g)
	}
}
