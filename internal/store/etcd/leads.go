package etcd

// Leads reports whether this member is Raft's leader, as far as it knows, and returns a channel that is closed at the
// next change of leadership. A member alone always leads.
//
// etcd tells of a change when it knows the new leader, not when a leader steps down without one. Until then leads may
// be true though nobody leads; nothing can be written in that time.
func (s *Store) Leads() (leads bool, changed <-chan struct{}) {
	server := s.Server()
	changed = server.LeaderChangedNotify() // first: a change after the next line closes it
	return server.Leader() == server.MemberID(), changed
}
