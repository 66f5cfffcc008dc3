package etcd

import (
	"context"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"google.golang.org/protobuf/proto"

	"minik8s/internal/store"
)

// How much history is read at a time, in bytes (about) and in revisions (at most). etcd's own watch would decode
// everything since the requested revision at once, however large the objects are.
const (
	sliceBytes   = 512 << 10
	firstSlice   = 16
	largestSlice = 1000
)

// Compacted implements store.Store. While the server restarts it is 0.
func (s *Store) Compacted() int64 {
	m, release, restarted := s.running()
	if restarted != nil {
		return 0
	}
	defer release()
	return m.server.KV().FirstRev()
}

// History implements store.Store. The database file keeps every change under its revision, so history is read from
// there in small slices, as fast as the reader takes them.
func (s *Store) History(ctx context.Context, prefix string, after int64) (store.Watch, error) {
	until, err := s.Revision(ctx)
	if err != nil {
		return nil, err
	}
	// At the compacted revision itself the previous values are deleted already.
	if after < s.Compacted() {
		return nil, store.ErrCompacted
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &watch{ch: make(chan store.Batch), stop: cancel}
	s.done.Add(1)
	go func() {
		defer s.done.Done()
		defer close(w.ch)
		w.fail(s.history(ctx, w, prefix, after, until))
	}()
	return w, nil
}

func (s *Store) history(ctx context.Context, w *watch, prefix string, after, until int64) error {
	for count, done := int64(firstSlice), false; !done; {
		batch := store.Batch{Revision: after}
		if after < until {
			var size int
			err := s.do(ctx, func(ctx context.Context, m *member) (err error) {
				batch, size, err = m.slice(ctx, prefix, after, min(after+count, until))
				return err
			})
			if err != nil {
				return err
			}
			count = max(1, min(count*sliceBytes/int64(max(size, 1)), largestSlice))
			after = batch.Revision
		}
		if done = after >= until; len(batch.Events) == 0 && !done {
			continue
		}
		select {
		case w.ch <- batch:
		case <-ctx.Done():
			return nil
		case <-s.quit:
			return nil
		}
	}
	return nil
}

// slice reads the changes of keys with the prefix after one revision up to another, with their previous values. size
// is the number of bytes read.
func (m *member) slice(ctx context.Context, prefix string, after, until int64) (batch store.Batch, size int, err error) {
	type read struct {
		store.Batch
		size int
	}
	r, err := attached(m, func() (r read, err error) {
		r.Batch, r.size, err = m.readSlice(ctx, prefix, after, until)
		return r, err
	})
	return r.Batch, r.size, err
}

// readSlice is slice while the database is open. It is bounded by revisions and not by etcd's limit: a limit counts the
// newest changes first, which are not in the file yet, and leaves out older ones.
func (m *member) readSlice(ctx context.Context, prefix string, after, until int64) (store.Batch, int, error) {
	kv, tx := m.server.KV(), m.server.Backend().ReadTx()
	from := mvcc.RevToBytes(mvcc.Revision{Main: after + 1}, mvcc.NewRevBytes())
	to := mvcc.RevToBytes(mvcc.Revision{Main: until + 1}, mvcc.NewRevBytes())
	batch, size := store.Batch{Revision: until}, 0
	err := func() error {
		tx.RLock()
		defer tx.RUnlock()
		revs, values := tx.UnsafeRange(schema.Key, from, to, 0)
		for i, b := range revs {
			size += len(values[i])
			var stored mvccpb.KeyValue
			if err := proto.Unmarshal(values[i], &stored); err != nil {
				return err
			}
			if !strings.HasPrefix(string(stored.Key), prefix) {
				continue
			}
			e := store.Event{Type: store.Put, KV: toKV(&stored)}
			if mvcc.IsTombstone(b) {
				e = store.Event{Type: store.Deletion, KV: store.KV{Key: string(stored.Key), Modified: mvcc.BytesToRev(b).Main}}
			}
			batch.Events = append(batch.Events, e)
		}
		return nil
	}()
	if err != nil {
		return batch, size, err
	}
	err = before(ctx, kv, batch.Events)
	if after < kv.FirstRev() { // compacted while it was read
		err = store.ErrCompacted
	}
	return batch, size, err
}

// before fills in the value before each change.
func before(ctx context.Context, kv mvcc.KV, events []store.Event) error {
	for i := range events {
		e := &events[i]
		if e.Type == store.Put && e.KV.Created == e.KV.Modified {
			continue
		}
		r, err := kv.Range(ctx, []byte(e.KV.Key), nil, mvcc.RangeOptions{Rev: e.KV.Modified - 1})
		if err != nil {
			return wrap(err)
		}
		if len(r.KVs) > 0 {
			prev := toKV(r.KVs[0])
			e.Prev = &prev
		}
	}
	return nil
}
