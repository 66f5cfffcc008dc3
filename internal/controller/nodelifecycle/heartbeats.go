package nodelifecycle

import (
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
)

// heartbeats has when each node's last heartbeat was seen, by this process's clock, not by the time in the heartbeat.
// Nodes' clocks may be wrong by hours; their times are only compared with each other.
type heartbeats struct {
	now func() time.Time

	mu    sync.Mutex
	began time.Time // when watching began
	last  map[string]time.Time
}

// begin forgets all, so that every node has its full time again: heartbeats may have been missed while nothing
// watched.
func (s *heartbeats) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.began, s.last = s.now(), map[string]time.Time{}
}

// of is when the last heartbeat of a node was seen.
func (s *heartbeats) of(name string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.last[name]; ok {
		return at
	}
	return s.began
}

// lease records a change of a node's Lease; only a renewal is a heartbeat.
func (s *heartbeats) lease(old, now *coordinationv1.Lease) {
	if now != nil && (old == nil || !now.Spec.RenewTime.Equal(old.Spec.RenewTime)) {
		s.record(now.Name)
	}
}

// node records a change of a Node: a new Node counts as a heartbeat, and so does a new lastHeartbeatTime in its
// status, which only its kubelet writes.
func (s *heartbeats) node(old, now *corev1.Node) {
	switch {
	case now == nil:
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.last, old.Name)
	case old == nil || !heartbeat(now).Equal(heartbeat(old)):
		s.record(now.Name)
	}
}

func (s *heartbeats) record(name string) {
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
