package external

import (
	"context"
	"strconv"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"minik8s/internal/store"
	"minik8s/internal/store/etcd/txn"
)

// keepCompacting drops old history once in an interval. All masters of a cluster try, and one does it: the key says to which
// revision they are to compact next, and its version which interval this is; who sets it first has the turn. What is
// dropped is what was there an interval ago, by this master's own sighting.
func (s *Store) keepCompacting() {
	defer s.done.Done()
	ctx := s.life
	var turn turn
	for sleep(ctx, s.cfg.CompactEvery) {
		if err := s.compactOnce(ctx, &turn); err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn("could not compact etcd's history", "error", err)
		}
	}
}

// turn is what a master knows of the last interval.
type turn struct {
	version  int64 // of the key
	revision int64 // etcd's
}

// compactOnce is one interval.
func (s *Store) compactOnce(ctx context.Context, t *turn) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	now, err := s.Revision(ctx) // brings watches forward, too: one that is quiet would lose its place
	if err != nil {
		return err
	}
	key := s.key(compactKey)
	resp, err := s.txn(ctx, &pb.TxnRequest{
		Compare: []*pb.Compare{{Key: key, Result: pb.Compare_EQUAL, Target: pb.Compare_VERSION, TargetUnion: &pb.Compare_Version{Version: t.version}}},
		Success: []*pb.RequestOp{txn.Put(key, strconv.AppendInt(nil, t.revision, 10))},
		Failure: []*pb.RequestOp{{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: key}}}},
	})
	if err != nil {
		return err
	}
	old := t.revision
	t.revision = now
	if !resp.Succeeded { // another master had the turn, or this one was not there before
		t.version = 0
		if kvs := resp.Responses[0].GetResponseRange().GetKvs(); len(kvs) > 0 {
			t.version = kvs[0].Version
			if done, err := strconv.ParseInt(string(kvs[0].Value), 10, 64); err == nil {
				raise(&s.compacted, done)
			}
		}
		return nil
	}
	t.version++
	if old == 0 {
		return nil
	}
	if err := s.Compact(ctx, old); err != nil && err != store.ErrCompacted { //nolint:errorlint // as wrap returns it; others may have compacted further
		return err
	}
	return nil
}
