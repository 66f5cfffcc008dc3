package function

import (
	"sync"
	"time"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/controller/loop"
)

// records are the last calls that somebody has waited for: those that have no object. They are the process's.
type records struct {
	mu   sync.Mutex
	of   map[loop.Key]*history
	byID map[loop.Key]*record // by namespace and the call's id
}

// history are a function's last calls, oldest first.
type history struct {
	calls []*record
	bytes int
	last  time.Time
}

// record is how one call went. Its result is kept if it is not too long.
type record struct {
	minik8s.FunctionRecord
	function loop.Key
	result   result
}

// What is kept: so many calls of a function, with so many bytes of results, of so many functions. Those go first that were called longest ago.
const (
	mostRecords     = 100
	mostRecordBytes = 256 << 10
	mostRecorded    = 64
	maxRecord       = 64 << 10 // bytes of one result
)

func newRecords() *records {
	return &records{of: map[loop.Key]*history{}, byID: map[loop.Key]*record{}}
}

func (r *record) key() loop.Key { return loop.Key{Namespace: r.function.Namespace, Name: r.ID} }

// add keeps one more.
func (s *records) add(r *record) {
	if len(r.result.body) > maxRecord {
		r.Result, r.result.body = "", nil
		r.Cut = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.of[r.function]
	if h == nil {
		h = &history{}
		s.of[r.function] = h
	}
	h.calls, h.bytes, h.last = append(h.calls, r), h.bytes+len(r.result.body), r.Time.Time
	s.byID[r.key()] = r
	for len(h.calls) > mostRecords || h.bytes > mostRecordBytes {
		s.shift(h)
	}
	if len(s.of) > mostRecorded {
		var first loop.Key
		for key, x := range s.of {
			if o := s.of[first]; o == nil || x.last.Before(o.last) {
				first = key
			}
		}
		s.drop(first)
	}
}

// shift drops a function's oldest call; mu is held.
func (s *records) shift(h *history) {
	old := h.calls[0]
	h.calls[0] = nil
	h.calls, h.bytes = h.calls[1:], h.bytes-len(old.result.body)
	if s.byID[old.key()] == old {
		delete(s.byID, old.key())
	}
}

// drop drops all calls of a function; mu is held.
func (s *records) drop(function loop.Key) {
	h := s.of[function]
	if h == nil {
		return
	}
	for len(h.calls) > 0 {
		s.shift(h)
	}
	delete(s.of, function)
}

// forget drops all calls of a function that is gone.
func (s *records) forget(function loop.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(function)
}

// get is one call; nil: it is not known any more.
func (s *records) get(namespace, id string) *record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[loop.Key{Namespace: namespace, Name: id}]
}

// list are a function's calls, the newest first. What a failed one says is told, too.
func (s *records) list(function loop.Key) []minik8s.FunctionRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []minik8s.FunctionRecord{}
	if h := s.of[function]; h != nil {
		for i := len(h.calls) - 1; i >= 0; i-- {
			x := h.calls[i].FunctionRecord
			if x.Fault != "" {
				x.Result = string(h.calls[i].result.body)
			}
			out = append(out, x)
		}
	}
	return out
}
