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

// Create implements store.Store.
func (s *Store) Create(ctx context.Context, key string, value []byte) (int64, error) {
	resp, err := s.txn(ctx, len(value), guarded(key, 0, put(key, value)))
	if err != nil {
		return 0, err
	}
	if !resp.Succeeded {
		return 0, store.ErrExists
	}
	return resp.Header.Revision, nil
}

// Update implements store.Store.
func (s *Store) Update(ctx context.Context, key string, value []byte, modified int64) (int64, error) {
	return s.change(ctx, key, modified, len(value), put(key, value))
}

// Delete implements store.Store.
func (s *Store) Delete(ctx context.Context, key string, modified int64) (int64, error) {
	return s.change(store.Essential(ctx), key, modified, 0, &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{
		RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte(key)}}})
}

func (s *Store) change(ctx context.Context, key string, modified int64, size int, op *pb.RequestOp) (int64, error) {
	resp, err := s.txn(ctx, size, guarded(key, modified, op))
	if err != nil {
		return 0, err
	}
	if resp.Succeeded {
		return resp.Header.Revision, nil
	}
	if r := resp.Responses; len(r) > 0 && r[0].GetResponseRange().GetCount() == 0 {
		return 0, store.ErrNotFound
	}
	return 0, store.ErrConflict
}

// entrySize is about what a change takes beside its value: key, guard, and pages of the tree.
const entrySize = 512

// txn runs one transaction that brings size bytes; when it is refused for want of space, housekeeping is woken to
// win some.
func (s *Store) txn(ctx context.Context, size int, req *pb.TxnRequest) (*pb.TxnResponse, error) {
	if err := s.space.admit(size+entrySize, store.IsEssential(ctx)); err != nil {
		s.short()
		return nil, err
	}
	resp, err := s.kv.Txn(ctx, req)
	if err = wrap(err); errors.Is(err, store.ErrNoSpace) {
		s.short()
	}
	return resp, err
}

// short wakes housekeeping.
func (s *Store) short() {
	select {
	case s.full <- struct{}{}:
	default:
	}
}

// guarded is op on the condition that key was last changed at modified; 0: that it is not there. If
// not, the answer says whether the key exists.
func guarded(key string, modified int64, op *pb.RequestOp) *pb.TxnRequest {
	return &pb.TxnRequest{
		Compare: []*pb.Compare{{
			Key: []byte(key), Result: pb.Compare_EQUAL, Target: pb.Compare_MOD,
			TargetUnion: &pb.Compare_ModRevision{ModRevision: modified},
		}},
		Success: []*pb.RequestOp{op},
		Failure: []*pb.RequestOp{{Request: &pb.RequestOp_RequestRange{
			RequestRange: &pb.RangeRequest{Key: []byte(key), CountOnly: true}}}},
	}
}

func put(key string, value []byte) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{
		RequestPut: &pb.PutRequest{Key: []byte(key), Value: value}}}
}

// Revision implements store.Store. A single member has applied every write that it acknowledged, so
// its own revision will do; one of several asks the leader first (a linearizable read).
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
