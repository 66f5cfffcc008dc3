package function

import (
	"sync"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/controller/loop"
)

// stored counts the FunctionCalls that are in the store, with those that are about to be, against what all functions may have there.
type stored struct {
	bound *budget

	mu    sync.Mutex
	calls map[loop.Key]held // by their own names
}

// held is what one call counts.
type held struct {
	function loop.Key
	bytes    int64
	seen     bool // its object
}

// mostStored is what all functions may have of calls and results in the store. What each has beside argument and result counts, too.
var (
	mostStored = amount{16384, 256 << 20}
	overhead   = int64(1 << 10)
)

// storedAgain is after how many seconds a caller may try again: results go with time.
const storedAgain = 10

func newStored() *stored {
	return &stored{bound: newBudget("calls in the store, with the results that are kept (spec.resultSeconds)", mostStored, storedAgain), calls: map[loop.Key]held{}}
}

// take counts a call that is about to be made, or refuses it (429). counted: it was not counted before.
func (s *stored) take(key, function loop.Key, bytes int64) (counted bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.calls[key]; there {
		return false, nil // its name is taken, and the store says so
	}
	h := held{function: function, bytes: bytes + overhead}
	if err := s.bound.take(function, amount{1, h.bytes}); err != nil {
		return false, err
	}
	s.calls[key] = h
	return true, nil
}

// drop ends the count of a call that could not be made.
func (s *stored) drop(key loop.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h, ok := s.calls[key]; ok && !h.seen {
		s.bound.give(h.function, amount{1, h.bytes})
		delete(s.calls, key)
	}
}

// changed takes over a call as it is in the store; now is nil if it is not there any more.
func (s *stored) changed(old, now *minik8s.FunctionCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now == nil {
		now = old
	} else {
		old = nil
	}
	key := callKey(now)
	if h, ok := s.calls[key]; ok {
		s.bound.give(h.function, amount{1, h.bytes})
		delete(s.calls, key)
	}
	if old == nil {
		h := held{loop.Key{Namespace: now.Namespace, Name: now.Spec.Function}, int64(len(now.Spec.Body)+len(now.Status.Result)) + overhead, true}
		s.bound.put(h.function, amount{1, h.bytes})
		s.calls[key] = h
	}
}
