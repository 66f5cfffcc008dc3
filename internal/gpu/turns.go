package gpu

import (
	"slices"
	"sync"

	"minik8s/internal/controller/loop"
)

// turns gives each cluster a share of the workers, so that a cluster that does not answer, for which each of its jobs waits
// minutes, leaves the workers of the others alone. A job that finds its cluster's share taken does not wait in a worker: it is
// told to whoever leaves next.
type turns struct {
	share int

	mu    sync.Mutex
	taken map[place]int
	later map[place][]loop.Key
}

func newTurns(share int) *turns {
	return &turns{share: share, taken: map[place]int{}, later: map[place][]loop.Key{}}
}

// take reports whether it is a job's turn; leave has to follow.
func (t *turns) take(at place, job loop.Key) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken[at] < t.share {
		t.taken[at]++
		return true
	}
	if !slices.Contains(t.later[at], job) {
		t.later[at] = append(t.later[at], job)
	}
	return false
}

// leave ends a turn, and says whose turn it is now: the next one's, and all that wait where nobody is left to call them. For a job
// that is called may be gone meanwhile, and calls nobody.
func (t *turns) leave(at place) []loop.Key {
	t.mu.Lock()
	defer t.mu.Unlock()
	called := min(1, len(t.later[at]))
	if t.taken[at]--; t.taken[at] == 0 {
		delete(t.taken, at)
		called = len(t.later[at])
	}
	next := t.later[at][:called]
	if t.later[at] = t.later[at][called:]; len(t.later[at]) == 0 {
		delete(t.later, at)
	}
	return next
}
