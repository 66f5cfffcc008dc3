package cgroup

import (
	"sync"
	"time"

	"minik8s/internal/kubelet/cri"
)

const (
	// stale is how long what was read of a cgroup counts that has used no CPU since.
	stale = 10 * time.Second
	// unread is when a cgroup is forgotten that nobody reads.
	unread = time.Minute
)

// Seen is what was read last of the mounted cgroups. Who reads them again and again keeps one, and makes a Reader of it each time.
// It is safe for concurrent use.
type Seen struct {
	mu    sync.Mutex
	of    map[string]last
	swept time.Time
}

// last is the usage of a cgroup, without Rest. Its CPU time was read before all else, at time at: what was used between the
// two is new at the next reading.
type last struct {
	cri.Usage
	at time.Time
}

// NewSeen makes a Seen of nothing.
func NewSeen() *Seen { return &Seen{of: map[string]last{}} }

// Reader returns a reader of the mounted cgroups that knows what was seen.
func (s *Seen) Reader() *Reader { return &Reader{root: Mounted, v2: Unified(), seen: s} }

// idle completes u, of which the CPU time is set, with what is known of the cgroup. It does nothing and is false if the cgroup
// has used CPU since, or if that was too long ago.
func (s *Seen) idle(path string, u *cri.Usage, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.of[path]
	if age := now.Sub(l.at); !ok || l.CPU != u.CPU || age < 0 || age >= stale {
		return false
	}
	rest := u.Rest
	*u = l.Usage
	u.Rest = rest
	return true
}

func (s *Seen) remember(path string, u *cri.Usage, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := last{Usage: *u, at: now}
	l.Rest = cri.Rest{}
	s.of[path] = l
	if now.Sub(s.swept) < unread && !now.Before(s.swept) {
		return
	}
	s.swept = now
	for path, l := range s.of {
		if age := now.Sub(l.at); age >= unread || age < 0 {
			delete(s.of, path)
		}
	}
}

func (s *Seen) forget(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, path)
}
