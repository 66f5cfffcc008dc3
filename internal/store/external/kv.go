package external

import (
	"cmp"
	"context"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"minik8s/internal/store"
)

func (s *Store) toKV(kv *mvccpb.KeyValue) store.KV {
	return store.KV{Key: string(kv.Key[len(s.cfg.Prefix):]), Value: kv.Value, Created: kv.CreateRevision, Modified: kv.ModRevision}
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, key string) (store.KV, error) {
	resp, err := s.read(ctx, &pb.RangeRequest{Key: s.key(key)})
	if err != nil {
		return store.KV{}, err
	}
	if len(resp.Kvs) == 0 {
		return store.KV{}, store.ErrNotFound
	}
	return s.toKV(resp.Kvs[0]), nil
}

// A listing without a limit is read in pages of about pageBytes, so that neither side has to keep all of it in one message.
const (
	firstPage, largestPage = 500, 10_000
	pageBytes              = 4 << 20
)

// List implements store.Store.
func (s *Store) List(ctx context.Context, prefix, after string, limit, revision int64) (store.Page, error) {
	return s.list(ctx, prefix, after, limit, revision)
}

func (s *Store) list(ctx context.Context, prefix, after string, limit, revision int64) (store.Page, error) {
	start, last := s.span(prefix)
	if after != "" && after >= prefix {
		start = s.key(after + "\x00")
	}
	var page store.Page
	for most := int64(firstPage); ; {
		n := limit
		if limit == 0 {
			n = most
		}
		resp, err := s.read(ctx, &pb.RangeRequest{Key: start, RangeEnd: last, Limit: n, Revision: revision})
		if err != nil {
			return store.Page{}, err
		}
		if page.KVs == nil {
			page.Count = resp.Count
			page.KVs = make([]store.KV, 0, min(resp.Count, cmp.Or(limit, resp.Count)))
			if revision == 0 {
				revision = resp.Header.Revision
			}
			page.Revision = revision
		}
		size := 0
		for _, kv := range resp.Kvs {
			size += len(kv.Value)
			page.KVs = append(page.KVs, s.toKV(kv))
		}
		if page.More = resp.More; limit != 0 || !resp.More {
			return page, nil
		}
		start = append(resp.Kvs[len(resp.Kvs)-1].Key, 0)
		most = max(1, min(n*pageBytes/int64(max(size, 1)), largestPage))
	}
}

// read reads what every write acknowledged before is in.
func (s *Store) read(ctx context.Context, req *pb.RangeRequest) (resp *pb.RangeResponse, err error) {
	err = s.do(ctx, readLimit, func(ctx context.Context) error {
		before := s.seen.Load()
		if resp, err = s.kv.Range(ctx, req); err == nil {
			err = s.since(before, resp.Header)
		}
		return err
	})
	return resp, err
}

// Revision implements store.Store. Watches that are behind it are brought there, though what is between may be others'
// changes, which they do not tell.
func (s *Store) Revision(ctx context.Context) (revision int64, err error) {
	err = s.do(ctx, readLimit, func(ctx context.Context) error {
		revision, err = s.barrier.wait(ctx, s.ask)
		return err
	})
	if err == nil {
		s.want(revision)
	}
	return revision, err
}

// ask asks a majority for the revision.
func (s *Store) ask() (int64, error) {
	before := s.seen.Load()
	ctx, cancel := context.WithTimeout(s.life, readLimit)
	defer cancel()
	resp, err := s.kv.Range(ctx, &pb.RangeRequest{Key: s.key(clusterKey), CountOnly: true})
	if err != nil {
		return 0, err
	}
	return resp.Header.Revision, s.since(before, resp.Header)
}

// barrier asks once for all who want an answer that was asked for after their call.
type barrier struct {
	mu     sync.Mutex
	asking bool
	next   *answer
}

type answer struct {
	done     chan struct{}
	revision int64
	err      error
}

// wait returns what ask says when it is called after wait was.
func (b *barrier) wait(ctx context.Context, ask func() (int64, error)) (int64, error) {
	b.mu.Lock()
	if b.next == nil {
		b.next = &answer{done: make(chan struct{})}
	}
	a := b.next
	if !b.asking {
		b.asking = true
		go b.run(ask)
	}
	b.mu.Unlock()
	select {
	case <-a.done:
		return a.revision, a.err
	case <-ctx.Done():
		return 0, statusOf(ctx.Err())
	}
}

// run asks until nobody wants to know any more.
func (b *barrier) run(ask func() (int64, error)) {
	for {
		b.mu.Lock()
		a := b.next
		b.next = nil
		b.asking = a != nil
		b.mu.Unlock()
		if a == nil {
			return
		}
		a.revision, a.err = ask()
		close(a.done)
	}
}

// Size implements store.Store, for a member of etcd: that of all its users' data. It is 0 if none answers.
func (s *Store) Size() (total, used int64) {
	ctx, cancel := context.WithTimeout(context.Background(), readLimit)
	defer cancel()
	resp, err := s.upkeep.Status(ctx, &pb.StatusRequest{})
	if err != nil {
		return 0, 0
	}
	return resp.DbSize, resp.DbSizeInUse
}

// Compacted implements store.Store, as far as this process knows: others compact the same etcd.
func (s *Store) Compacted() int64 { return s.compacted.Load() }

// Compact implements store.Store. The history is dropped for all users of etcd.
func (s *Store) Compact(ctx context.Context, revision int64) error {
	err := s.do(ctx, writeLimit, func(ctx context.Context) error {
		_, err := s.kv.Compact(ctx, &pb.CompactionRequest{Revision: revision})
		return err
	})
	if err == nil {
		raise(&s.compacted, revision)
	}
	return err
}
