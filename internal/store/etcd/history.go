package etcd

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/storage/mvcc"

	"minik8s/internal/store"
)

// progressPause is how often it is asked, while history is read, whether all of it has been. etcd itself goes
// through its slow watchers every 100 ms.
const progressPause = 20 * time.Millisecond

// History implements store.Store: a watch of etcd's own, left when it has caught up.
func (s *Store) History(ctx context.Context, prefix string, after int64) (store.Watch, error) {
	kv := s.server.Server.KV()
	// At the revision of the compaction itself what was there before is gone already.
	if after < s.Compacted() {
		return nil, store.ErrCompacted
	}
	stream := s.server.Server.Watchable().NewWatchStream()
	id, err := stream.Watch(ctx, clientv3.AutoWatchID, []byte(prefix), []byte(clientv3.GetPrefixRangeEnd(prefix)), after+1)
	if err != nil {
		stream.Close()
		return nil, wrap(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &watch{ch: make(chan store.Batch), stop: cancel}
	s.done.Add(1)
	go func() {
		defer s.done.Done()
		defer close(w.ch)
		defer stream.Close()
		w.fail(s.history(ctx, w, stream, id, kv))
	}()
	return w, nil
}

func (s *Store) history(ctx context.Context, w *watch, stream mvcc.WatchStream, id mvcc.WatchID, kv mvcc.KV) error {
	until := kv.Rev()
	ask := time.NewTicker(progressPause)
	defer ask.Stop()
	stream.RequestProgress(id) // answered at once if there is nothing to catch up with
	for {
		select {
		case resp, ok := <-stream.Chan():
			if !ok {
				return nil
			}
			if resp.CompactRevision != 0 {
				return store.ErrCompacted
			}
			done := len(resp.Events) == 0 && resp.Revision >= until
			batch := toBatch(resp)
			if batch.Revision == 0 {
				batch.Revision = resp.Revision
			}
			if err := before(ctx, kv, batch.Events); err != nil {
				return err
			}
			select {
			case w.ch <- batch:
			case <-ctx.Done():
				return nil
			case <-s.quit:
				return nil
			}
			if done {
				return nil
			}
		case <-ask.C:
			stream.RequestProgress(id)
		case <-ctx.Done():
			return nil
		case <-s.quit:
			return nil
		}
	}
}

// before fills in what was there before each change.
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

// Compacted implements store.Store.
func (s *Store) Compacted() int64 { return s.server.Server.KV().FirstRev() }
