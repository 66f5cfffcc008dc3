package etcd

import (
	"bytes"
	"context"
	"errors"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"minik8s/internal/store"
)

// Write implements store.Store.
//
// When the leader is lost while a write waits for it, nobody knows whether it will be carried out. It is then proposed
// again to the next leader: its guards hold for one of the attempts at most. If the second attempt is refused, the
// history of the keys tells whether the first one was carried out.
func (s *Store) Write(ctx context.Context, changes ...store.Change) (int64, error) {
	req, size, removes := request(changes)
	var resp *pb.TxnResponse
	open := 0 // how many earlier attempts may have been carried out
	err := s.do(ctx, func(ctx context.Context, m *member) (err error) {
		resp, err = s.txn(ctx, m, size, removes || store.IsEssential(ctx), req)
		if err != nil && !dropped(err) && passing(context.Background(), err) {
			open++
		}
		return err
	})
	switch {
	case errors.Is(err, store.ErrUnavailable) && open > 0:
		return 0, errors.Join(store.ErrUnknown, err)
	case err != nil:
		return 0, err
	case resp.Succeeded:
		return resp.Header.Revision, nil
	case open > 0:
		if rev, err := s.happened(ctx, changes); rev != 0 || err != nil {
			return rev, err
		}
	}
	return 0, refusal(changes, resp)
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
		modified := int64(0)
		if kvs := resp.Responses[n].GetResponseRange().GetKvs(); len(kvs) > 0 {
			modified = kvs[0].ModRevision
		}
		if err := changes[i].Check(modified); err != nil {
			return err
		}
		n++
	}
	return store.ErrConflict
}

// happened tells whether a write was carried out of which an attempt was refused after others had got no answer: the
// revision if it was, 0 if it was not, store.ErrUnknown if that cannot be told any more. It looks for a version of the
// first key that is set, newer than the guard's, with the value that was to be set.
func (s *Store) happened(ctx context.Context, changes []store.Change) (int64, error) {
	for i := range changes {
		c := &changes[i]
		if c.Action != store.Set {
			continue
		}
		for at := int64(0); ; {
			resp, err := s.read(ctx, &pb.RangeRequest{Key: []byte(c.Key), Revision: at})
			switch {
			case err != nil, len(resp.Kvs) == 0: // the history is gone, or the key was deleted since
				return 0, store.ErrUnknown
			case resp.Kvs[0].ModRevision <= c.Modified:
				return 0, nil
			case bytes.Equal(resp.Kvs[0].Value, c.Value):
				return resp.Kvs[0].ModRevision, nil
			case resp.Kvs[0].Version == 1:
				return 0, nil
			}
			at = resp.Kvs[0].ModRevision - 1
		}
	}
	return 0, store.ErrUnknown
}

// entrySize is about how many bytes a change takes beside its value: key, guard, and pages of the database.
const entrySize = 512

// txn runs one transaction that writes about size bytes. If it is refused for lack of space, housekeeping is woken to
// free some.
func (s *Store) txn(ctx context.Context, m *member, size int, essential bool, req *pb.TxnRequest) (*pb.TxnResponse, error) {
	if err := s.space.admit(size, essential); err != nil {
		s.wakeHousekeeping()
		return nil, err
	}
	resp, err := m.kv.Txn(ctx, req)
	if err = wrap(err); errors.Is(err, store.ErrNoSpace) {
		s.wakeHousekeeping()
	}
	return resp, err
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
