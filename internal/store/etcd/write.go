package etcd

import (
	"context"
	"errors"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/types"

	"minik8s/internal/store"
)

// Write implements store.Store.
//
// When the leader is lost while a write waits for it, nobody knows whether it will be carried out. Before it is proposed
// again to the next leader, the member makes sure that the first attempt is not under way any more, and looks whether it
// was carried out; see fence.go.
func (s *Store) Write(ctx context.Context, changes ...store.Change) (int64, error) {
	req, size, removes := request(changes)
	w := attempt{changes: changes, req: req}
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
		return s.txn(ctx, m, size, removes || store.IsEssential(ctx), &w)
	})
	switch {
	case err != nil && w.open && !errors.Is(err, store.ErrUnknown):
		return 0, errors.Join(store.ErrUnknown, err)
	case err != nil:
		return 0, err
	case w.revision != 0:
		return w.revision, nil
	}
	return 0, refusal(changes, w.resp)
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

// request is the transaction for changes, about how many bytes it writes, and whether it only removes.
func request(changes []store.Change) (req *pb.TxnRequest, size int, removes bool) {
	req, removes = &pb.TxnRequest{}, true
	for i := range changes {
		c := &changes[i]
		switch key := []byte(c.Key); c.Action {
		case store.Set:
			removes, size = false, size+len(c.Value)+entrySize
			req.Success = append(req.Success, put(key, c.Value))
		case store.Remove:
			size += entrySize
			req.Success = append(req.Success, remove(key))
		}
		if c.Guard != store.Any {
			req.Compare = append(req.Compare, lastChangedAt([]byte(c.Key), c.Modified)) // 0: it does not exist
			req.Failure = append(req.Failure, revisionOf([]byte(c.Key)))
		}
	}
	return req, size, removes
}

// refusal finds the guard that did not hold, from the reads that a failed transaction answers with.
func refusal(changes []store.Change, resp *pb.TxnResponse) error {
	n := 0
	for i := range changes {
		if changes[i].Guard == store.Any {
			continue
		}
		if err := changes[i].Check(modified(resp.Responses[n])); err != nil {
			return err
		}
		n++
	}
	return store.ErrConflict
}

// entrySize is about how many bytes a change takes beside its value: key, guard, and pages of the database.
const entrySize = 512

// txn runs one transaction that writes about size bytes. If it is refused for lack of space, housekeeping is woken to
// free some.
func (s *Store) txn(ctx context.Context, m *member, size int, essential bool, w *attempt) error {
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

func lastChangedAt(key []byte, revision int64) *pb.Compare {
	return &pb.Compare{Key: key, Result: pb.Compare_EQUAL, Target: pb.Compare_MOD,
		TargetUnion: &pb.Compare_ModRevision{ModRevision: revision}}
}

func revisionOf(key []byte) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: key, KeysOnly: true}}}
}

func put(key, value []byte) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: key, Value: value}}}
}

func remove(key []byte) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: key}}}
}
