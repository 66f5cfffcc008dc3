package external

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"minik8s/internal/store"
)

// Watch implements store.Store. Each watch has a stream of its own, and opens another one when it is lost, at the revision
// it has reached.
func (s *Store) Watch(ctx context.Context, prefix string, after int64) (store.Watch, error) {
	first, last := s.span(prefix)
	w := s.newWatch(first, last, after)
	w.target = s.wanted.Load
	s.open.add(w)
	w.start(ctx, func() { s.open.remove(w) })
	return w, nil
}

type watch struct {
	s           *Store
	ch          chan store.Batch
	stop        context.CancelFunc
	first, last []byte
	previous    bool
	after       atomic.Int64 // everything up to this revision was delivered
	// target is the revision that the watch has to reach, whether there are changes or not; nudge says that it is a higher one.
	target func() int64
	nudge  chan struct{}
	// until is the revision at which the watch ends; 0: it does not.
	until int64
	// part are changes at the revision after after that came in a message without the rest of that revision.
	part []store.Event

	mu  sync.Mutex
	err error
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

func (s *Store) newWatch(first, last []byte, after int64) *watch {
	w := &watch{s: s, ch: make(chan store.Batch), first: first, last: last, nudge: make(chan struct{}, 1)}
	w.after.Store(after)
	return w
}

// start runs the watch; ended is called at its end.
func (w *watch) start(ctx context.Context, ended func()) {
	ctx, w.stop = w.s.context(ctx)
	w.s.done.Add(1)
	go func() {
		defer w.s.done.Done()
		defer close(w.ch)
		defer w.stop()
		defer ended()
		w.run(ctx)
	}()
}

// errDone is the error of a stream that has delivered all that the watch is to tell.
var errDone = errors.New("the watch has come to its end")

// run follows one stream after the other.
func (w *watch) run(ctx context.Context) {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		before := w.after.Load()
		err := w.follow(ctx)
		switch {
		case ctx.Err() != nil, errors.Is(err, errDone):
			return
		case errors.Is(err, store.ErrCompacted), errors.Is(err, errAnother):
			w.fail(err)
			return
		case !passing(err) && !errors.Is(err, errSilent):
			w.s.cfg.Log.Warn("a watch on etcd was refused, trying again", "error", err)
			pause = maxRedial
		}
		if w.after.Load() > before {
			pause = minPause
		}
		if !sleep(ctx, pause) {
			return
		}
	}
}

// message is what a stream has brought.
type message struct {
	*pb.WatchResponse
	err error
}

// follow opens a stream and delivers what it brings, until it ends.
func (w *watch) follow(parent context.Context) error {
	// Of a member that is cut off from its leader nothing would be heard.
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(parent))
	defer cancel()
	stream, err := w.s.watches.Watch(ctx)
	if err != nil {
		return err
	}
	w.part = nil
	err = stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{
		Key: w.first, RangeEnd: w.last, StartRevision: w.after.Load() + 1, PrevKv: w.previous, Fragment: true, ProgressNotify: true}}})
	if err != nil {
		_, err = stream.Recv() // it has the reason
		return err
	}
	in := make(chan message)
	go func() {
		for {
			resp, err := stream.Recv()
			select {
			case in <- message{resp, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	behind := progress{w: w, ask: func() error {
		return stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}})
	}}
	defer behind.stop()
	behind.check()
	for {
		select {
		case m := <-in:
			if m.err != nil {
				return m.err
			}
			if err := w.take(ctx, m.WatchResponse); err != nil {
				return err
			}
			behind.heard(time.Now())
		case <-w.nudge:
			behind.check()
		case <-behind.timer():
			if err := behind.late(time.Now()); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// take delivers what a message tells.
func (w *watch) take(ctx context.Context, resp *pb.WatchResponse) error {
	if err := w.s.observe(resp.Header); err != nil {
		return err
	}
	switch {
	case resp.CompactRevision != 0:
		raise(&w.s.compacted, resp.CompactRevision)
		return store.ErrCompacted
	case resp.Canceled:
		return fmt.Errorf("etcd has ended the watch: %s", resp.CancelReason)
	case resp.Created:
		return nil
	}
	batch, err := w.batch(resp)
	if err != nil {
		return err
	}
	if batch.Revision > w.after.Load() {
		select {
		case w.ch <- batch:
			w.after.Store(batch.Revision)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if w.until != 0 && w.after.Load() >= w.until {
		return errDone
	}
	return nil
}

// batch is what a message completes. Its revision is that of its last change, not that of the message: while a watch
// catches up, that one is ahead of what was sent. Only a message without changes tells how far the watch is.
//
// A message may hold a part of the changes of a revision, which are delivered when the rest is there.
func (w *watch) batch(resp *pb.WatchResponse) (store.Batch, error) {
	if len(resp.Events) == 0 {
		return store.Batch{Revision: resp.Header.Revision}, nil
	}
	events := w.part
	w.part = nil
	for _, e := range resp.Events {
		if e.Kv.ModRevision <= w.after.Load() {
			continue // before 3.5.18 a member may repeat changes after it was sent a snapshot of the log
		}
		ev, err := w.event(e)
		if err != nil {
			return store.Batch{}, err
		}
		if at := w.s.claimed.Load(); ev.KV.Key == clusterKey && at != 0 && ev.KV.Modified > at {
			return store.Batch{}, w.s.gone() // with the objects, which are not to be taken for deleted one by one
		}
		events = append(events, ev)
	}
	whole := len(events)
	if whole == 0 {
		return store.Batch{}, nil
	}
	if last := events[whole-1].KV.Modified; resp.Fragment {
		for whole > 0 && events[whole-1].KV.Modified == last {
			whole--
		}
		w.part = append(w.part, events[whole:]...)
	}
	if whole == 0 {
		return store.Batch{}, nil
	}
	return store.Batch{Events: events[:whole:whole], Revision: events[whole-1].KV.Modified}, nil
}

// event is a change. The error is store.ErrCompacted if what was there before is wanted and not kept any more.
func (w *watch) event(e *mvccpb.Event) (store.Event, error) {
	out := store.Event{Type: store.Put, KV: w.s.toKV(e.Kv)}
	if e.Type == mvccpb.Event_DELETE {
		out = store.Event{Type: store.Deletion, KV: store.KV{Key: out.KV.Key, Modified: out.KV.Modified}}
	}
	if !w.previous || out.Type == store.Put && out.KV.Created == out.KV.Modified {
		return out, nil
	}
	if e.PrevKv == nil {
		return out, store.ErrCompacted
	}
	prev := w.s.toKV(e.PrevKv)
	out.Prev = &prev
	return out, nil
}
