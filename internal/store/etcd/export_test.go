package etcd

import (
	"context"

	"minik8s/internal/store"
	"minik8s/internal/store/etcd/txn"
)

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

// Late is a write whose proposal is on its way: land has it arrive, and reports whether it is carried out.
func (s *Store) Late(changes ...store.Change) (land func(context.Context) (bool, error)) {
	m, release, _ := s.running()
	defer release()
	req := m.under(m.fence.Load(), txn.Of(changes, bytesOf))
	return func(ctx context.Context) (bool, error) {
		resp, err := m.kv.Txn(ctx, req)
		return resp.GetSucceeded(), err
	}
}

// GiveUp does what comes before a write without an answer is proposed again.
func (s *Store) GiveUp(ctx context.Context, since int64, changes ...store.Change) (int64, error) {
	m, release, _ := s.running()
	defer release()
	w := attempt{changes: changes, since: since, open: true, fence: m.fence.Load()}
	err := w.close(ctx, m)
	return w.revision, err
}

// ForgetFence makes the member as one that has just started.
func (s *Store) ForgetFence() {
	m, release, _ := s.running()
	defer release()
	m.fence.Store(0)
}

// Turn takes the member's turn to do what blocks it; nil: it is not its turn.
func (s *Store) Turn(ctx context.Context) (over func()) {
	m, release, _ := s.running()
	defer release()
	return s.turn(ctx, m)
}
