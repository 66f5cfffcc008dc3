package etcd

import (
	"context"

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
	resp, err := s.read(ctx, &pb.RangeRequest{Key: []byte(key)})
	if err != nil {
		return store.KV{}, err
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
	resp, err := s.read(ctx, &pb.RangeRequest{
		Key: []byte(start), RangeEnd: []byte(clientv3.GetPrefixRangeEnd(prefix)),
		Limit: limit, Revision: revision,
	})
	if err != nil {
		return store.Page{}, err
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

// read reads what every write acknowledged before is in, on whichever member.
func (s *Store) read(ctx context.Context, req *pb.RangeRequest) (resp *pb.RangeResponse, err error) {
	err = s.do(ctx, func(ctx context.Context, m *member) error {
		resp, err = m.kv.Range(ctx, req)
		return err
	})
	return resp, wrap(err)
}

// Revision implements store.Store. A member alone has applied every write that it acknowledged, so its own revision is
// current; one of several asks the leader how far it must be, once for all that ask at the time.
func (s *Store) Revision(ctx context.Context) (rev int64, err error) {
	err = s.do(ctx, func(ctx context.Context, m *member) error {
		if err := m.current(ctx); err != nil {
			return err
		}
		rev = m.server.KV().Rev()
		return nil
	})
	return rev, err
}

// Size implements store.Store. While the server restarts it is 0.
func (s *Store) Size() (total, used int64) {
	m, release, restarted := s.running()
	if restarted != nil {
		return 0, 0
	}
	defer release()
	return m.size()
}

func (m *member) size() (total, used int64) {
	b := m.server.Backend()
	return b.Size(), b.SizeInUse()
}

// Compact implements store.Store.
func (s *Store) Compact(ctx context.Context, revision int64) error {
	return wrap(s.do(ctx, func(ctx context.Context, m *member) error {
		_, err := m.kv.Compact(ctx, &pb.CompactionRequest{Revision: revision})
		return err
	}))
}
