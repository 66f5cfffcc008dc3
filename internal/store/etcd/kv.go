package etcd

import (
	"context"
	"errors"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"minik8s/internal/store"
)

func toKV(kv *mvccpb.KeyValue) store.KV {
	return store.KV{Key: string(kv.Key), Value: kv.Value, Created: kv.CreateRevision, Modified: kv.ModRevision}
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, key string) (store.KV, error) {
	resp, err := s.kv.Range(ctx, &pb.RangeRequest{Key: []byte(key)})
	if err != nil {
		return store.KV{}, wrap(err)
	}
	if len(resp.Kvs) == 0 {
		return store.KV{}, store.ErrNotFound
	}
	return toKV(resp.Kvs[0]), nil
}

// List implements store.Store.
func (s *Store) List(ctx context.Context, prefix, after string, limit, revision int64) (store.Page, error) {
	start := prefix
	if after >= prefix {
		start = after + "\x00"
	}
	resp, err := s.kv.Range(ctx, &pb.RangeRequest{
		Key: []byte(start), RangeEnd: []byte(clientv3.GetPrefixRangeEnd(prefix)),
		Limit: limit, Revision: revision,
	})
	if err != nil {
		return store.Page{}, wrap(err)
	}
	page := store.Page{Revision: resp.Header.Revision, More: resp.More, Count: resp.Count}
	if revision != 0 {
		page.Revision = revision
	}
	page.KVs = make([]store.KV, len(resp.Kvs))
	for i, kv := range resp.Kvs {
		page.KVs[i] = toKV(kv)
	}
	return page, nil
}

// Write implements store.Store.
func (s *Store) Write(ctx context.Context, changes ...store.Change) (int64, error) {
	req, size, removes := &pb.TxnRequest{}, 0, true
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
	resp, err := s.txn(ctx, size, removes || store.IsEssential(ctx), req)
	if err != nil {
		return 0, err
	}
	if resp.Succeeded {
		return resp.Header.Revision, nil
	}
	return 0, refusal(changes, resp)
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

// entrySize is about how many bytes a change takes beside its value: key, guard, and pages of the database.
const entrySize = 512

// txn runs one transaction that writes about size bytes. If it is refused for lack of space, housekeeping is woken to
// free some.
func (s *Store) txn(ctx context.Context, size int, essential bool, req *pb.TxnRequest) (*pb.TxnResponse, error) {
	if err := s.space.admit(size, essential); err != nil {
		s.wakeHousekeeping()
		return nil, err
	}
	resp, err := s.kv.Txn(ctx, req)
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

// Revision implements store.Store. A single member has applied every write that it acknowledged, so its own revision
// is current; one of several asks the leader first (a linearizable read).
func (s *Store) Revision(ctx context.Context) (int64, error) {
	if len(s.server.Server.Cluster().Members()) == 1 {
		return s.server.Server.KV().Rev(), nil
	}
	resp, err := s.kv.Range(ctx, &pb.RangeRequest{Key: []byte{0}, CountOnly: true})
	if err != nil {
		return 0, wrap(err)
	}
	return resp.Header.Revision, nil
}

// Compact implements store.Store.
func (s *Store) Compact(ctx context.Context, revision int64) error {
	_, err := s.kv.Compact(ctx, &pb.CompactionRequest{Revision: revision})
	return wrap(err)
}

// Size implements store.Store.
func (s *Store) Size() (total, used int64) {
	b := s.server.Server.Backend()
	return b.Size(), b.SizeInUse()
}
