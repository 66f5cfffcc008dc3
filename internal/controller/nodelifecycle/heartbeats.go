package nodelifecycle

import (
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
)

// sightings are when nodes last gave a sign of life, by our own clock: the moment at which we saw one, not
// the moment that it names. Nodes' clocks may go wrong by hours, and are only compared with themselves.
type sightings struct {
	now func() time.Time

	mu    sync.Mutex
	began time.Time // to look; nobody could have told us before
	last  map[string]time.Time
}

// begin forgets all, so that every node has its full time again: what happened while nobody looked is not
// the nodes' fault.
func (s *sightings) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.began, s.last = s.now(), map[string]time.Time{}
}

// of is when a node gave its last sign of life.
func (s *sightings) of(name string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.last[name]; ok {
		return at
	}
	return s.began
}

// lease takes in a change of a node's Lease; one that is not renewed by it says nothing.
func (s *sightings) lease(old, now *coordinationv1.Lease) {
	if now != nil && (old == nil || !now.Spec.RenewTime.Equal(old.Spec.RenewTime)) {
		s.saw(now.Name)
	}
}

// node takes in a change of a Node: a new one has just come, and a new heartbeat in its status, which only
// its kubelet writes, is a sign of life as good as a Lease.
func (s *sightings) node(old, now *corev1.Node) {
	switch {
	case now == nil:
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.last, old.Name)
	case old == nil || !heartbeat(now).Equal(heartbeat(old)):
		s.saw(now.Name)
	}
}

func (s *sightings) saw(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last[name] = s.now()
}

func heartbeat(n *corev1.Node) time.Time {
	if c := condition(n, corev1.NodeReady); c != nil {
		return c.LastHeartbeatTime.Time
	}
	return time.Time{}
}
