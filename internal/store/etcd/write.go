package etcd

import (
	"context"
	"errors"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/types"

	"minik8s/internal/store"
	"minik8s/internal/store/etcd/txn"
)

// Write implements store.Store.
//
// When the leader is lost while a write waits for it, nobody knows whether it will be carried out. Before it is proposed
// again to the next leader, the member makes sure that the first attempt is not under way any more, and looks whether it
// was carried out; see fence.go.
func (s *Store) Write(ctx context.Context, changes ...store.Change) (int64, error) {
	size, removes := weight(changes)
	w := attempt{changes: changes, req: txn.Of(changes, bytesOf)}
	err := s.within(ctx, writeLimit, func(ctx context.Context, m *member) error {
		if w.since == 0 {
			w.since = m.server.KV().Rev() // it may be behind
		}
		if w.open && m.server.MemberID() != w.by { // this machine has joined anew: the fence of that write is not its own
			return store.ErrUnknown
		}
		w.by = m.server.MemberID()
		if w.open {
			if err := w.close(ctx, m); err != nil || w.revision != 0 {
				return err
			}
		}
		return s.admitted(ctx, m, size, removes || store.IsEssential(ctx), &w)
	})
	switch {
	case err != nil && w.open && !errors.Is(err, store.ErrUnknown):
		return 0, errors.Join(store.ErrUnknown, err)
	case err != nil:
		return 0, err
	case w.revision != 0:
		return w.revision, nil
	}
	return 0, txn.Refusal(changes, w.resp)
}

// attempt is a write on its way.
type attempt struct {
	changes []store.Change
	req     *pb.TxnRequest
	since   int64    // a revision before the first attempt
	by      types.ID // the member that proposed it
	// open says that there was an attempt, under the fence, that may still be carried out.
	open  bool
	fence int64
	// revision is that of the write, once it was carried out; resp says why it was refused.
	revision int64
	resp     *pb.TxnResponse
}

// close finds out what became of the open attempt.
func (w *attempt) close(ctx context.Context, m *member) (err error) {
	if err = m.fenceOff(ctx, w.fence); err != nil {
		return wrap(err)
	}
	if w.revision, err = m.happened(ctx, w.changes, w.since); err == nil {
		w.open = false
	}
	return err
}

// propose proposes the write.
func (w *attempt) propose(ctx context.Context, m *member) (err error) {
	w.resp, w.fence, err = m.propose(ctx, w.req)
	switch {
	case err != nil:
		w.open = !dropped(err) && passing(context.Background(), err)
	case w.resp.Succeeded:
		w.revision = w.resp.Header.Revision
	}
	return wrap(err)
}

// weight is about how many bytes changes write, and whether they only remove.
func weight(changes []store.Change) (size int, removes bool) {
	removes = true
	for i := range changes {
		switch changes[i].Action {
		case store.Set:
			removes, size = false, size+len(changes[i].Value)+entrySize
		case store.Remove:
			size += entrySize
		}
	}
	return size, removes
}

func bytesOf(key string) []byte { return []byte(key) }

// entrySize is about how many bytes a change takes beside its value: key, guard, and pages of the database.
const entrySize = 512

// admitted runs one transaction that writes about size bytes. If it is refused for lack of space, housekeeping is woken to
// free some.
func (s *Store) admitted(ctx context.Context, m *member, size int, essential bool, w *attempt) error {
	if err := s.space.Admit(size, essential); err != nil {
		s.wakeHousekeeping()
		return err
	}
	err := w.propose(ctx, m)
	if errors.Is(err, store.ErrNoSpace) {
		s.wakeHousekeeping()
	}
	return err
}

// wakeHousekeeping has housekeeping run now, because space is short.
func (s *Store) wakeHousekeeping() {
	select {
	case s.full <- struct{}{}:
	default:
	}
}
