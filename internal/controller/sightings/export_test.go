package sightings

// Holds is of how many objects something is noted.
func (s *Sightings) Holds() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}
