package etcd

// Halt ends the member as a kill does: at once, without passing on its leadership.
func (s *Store) Halt() {
	close(s.quit)
	s.done.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.member
	close(m.ending)
	m.streams.Wait()
	m.server.HardStop()
	m.close()
}
