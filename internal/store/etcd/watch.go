package etcd

import (
	"context"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/storage/mvcc"

	"minik8s/internal/store"
)

// Watch implements store.Store, on the server's own hub: no client, no stream, one channel. When the server restarts,
// the watch goes on with the new one, where it was.
func (s *Store) Watch(ctx context.Context, prefix string, after int64) (store.Watch, error) {
	ctx, cancel := context.WithCancel(ctx)
	w := &watch{ch: make(chan store.Batch), stop: cancel, prefix: prefix, after: after}
	m, release, err := s.use(ctx, time.Now().Add(patience))
	if err != nil {
		cancel()
		return nil, err
	}
	defer release()
	stream, err := w.open(ctx, m)
	if err != nil {
		cancel()
		return nil, err
	}
	s.done.Add(1)
	go func() {
		defer s.done.Done()
		defer close(w.ch)
		for w.follow(ctx, m, stream, s.quit) {
			var release func()
			if m, release, err = s.use(ctx, time.Time{}); err != nil {
				return // it was stopped, or the store is closed
			}
			stream, err = w.open(ctx, m)
			release()
			if err != nil {
				w.fail(err)
				return
			}
		}
	}()
	return w, nil
}

type watch struct {
	ch     chan store.Batch
	stop   context.CancelFunc
	prefix string
	after  int64 // everything up to this revision was delivered
	mu     sync.Mutex
	err    error
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

// open begins a stream of what was not delivered yet. follow ends it.
func (w *watch) open(ctx context.Context, m *member) (mvcc.WatchStream, error) {
	stream := m.server.Watchable().NewWatchStream()
	first, end := []byte(w.prefix), []byte(clientv3.GetPrefixRangeEnd(w.prefix))
	if w.prefix == "" {
		first, end = []byte{0}, []byte{} // all keys, in the hub's protocol
	}
	if _, err := stream.Watch(ctx, clientv3.AutoWatchID, first, end, w.after+1); err != nil {
		stream.Close()
		return nil, wrap(err)
	}
	m.streams.Add(1)
	return stream, nil
}

// follow delivers what a stream brings. It returns true if the server that feeds it ends for a restart.
func (w *watch) follow(ctx context.Context, m *member, stream mvcc.WatchStream, quit <-chan struct{}) (again bool) {
	defer m.streams.Done()
	defer stream.Close()
	for {
		select {
		case resp, ok := <-stream.Chan():
			if !ok {
				return false
			}
			if resp.CompactRevision != 0 {
				w.fail(store.ErrCompacted)
				return false
			}
			if len(resp.Events) == 0 {
				continue
			}
			b := toBatch(resp)
			select {
			case w.ch <- b:
				w.after = b.Revision
			case <-ctx.Done():
				return false
			case <-quit:
				return false
			case <-m.ending:
				return true
			}
		case <-ctx.Done():
			return false
		case <-quit:
			return false
		case <-m.ending:
			return true
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
