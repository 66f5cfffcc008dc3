package etcd

import (
	"context"
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/storage/mvcc"

	"minik8s/internal/store"
)

// Watch implements store.Store, on the server's own hub: no client, no stream, one channel.
func (s *Store) Watch(ctx context.Context, prefix string, after int64) (store.Watch, error) {
	stream := s.server.Server.Watchable().NewWatchStream()
	first, end := []byte(prefix), []byte(clientv3.GetPrefixRangeEnd(prefix))
	if prefix == "" {
		first, end = []byte{0}, []byte{} // all keys, in the hub's protocol
	}
	if _, err := stream.Watch(ctx, clientv3.AutoWatchID, first, end, after+1); err != nil {
		stream.Close()
		return nil, wrap(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &watch{ch: make(chan store.Batch), stop: cancel}
	s.done.Add(1)
	go func() {
		defer s.done.Done()
		w.run(ctx, stream, s.quit)
	}()
	return w, nil
}

type watch struct {
	ch   chan store.Batch
	stop context.CancelFunc
	mu   sync.Mutex
	err  error
}

func (w *watch) Batches() <-chan store.Batch { return w.ch }
func (w *watch) Stop()                       { w.stop() }

func (w *watch) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

func (w *watch) fail(err error) {
	w.mu.Lock()
	w.err = err
	w.mu.Unlock()
}

func (w *watch) run(ctx context.Context, stream mvcc.WatchStream, quit <-chan struct{}) {
	defer close(w.ch)
	defer stream.Close()
	for {
		select {
		case resp, ok := <-stream.Chan():
			if !ok {
				return
			}
			if resp.CompactRevision != 0 {
				w.fail(store.ErrCompacted)
				return
			}
			if len(resp.Events) == 0 {
				continue
			}
			select {
			case w.ch <- toBatch(resp):
			case <-ctx.Done():
				return
			case <-quit:
				return
			}
		case <-ctx.Done():
			return
		case <-quit:
			return
		}
	}
}

// toBatch uses the revision of the last change, not the response's: while a watcher catches up, that one is ahead of
// what was sent.
func toBatch(resp mvcc.WatchResponse) store.Batch {
	b := store.Batch{Events: make([]store.Event, len(resp.Events))}
	for i, e := range resp.Events {
		ev := store.Event{Type: store.Put, KV: toKV(e.Kv)}
		if e.Type == mvccpb.Event_DELETE {
			ev.Type = store.Deletion
		}
		b.Events[i] = ev
		b.Revision = max(b.Revision, e.Kv.ModRevision)
	}
	return b
}
