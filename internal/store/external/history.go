package external

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"minik8s/internal/store"
)

// History implements store.Store: a watch of what is past already.
func (s *Store) History(ctx context.Context, prefix string, after int64) (store.Watch, error) {
	until, err := s.Revision(ctx)
	if err != nil {
		return nil, err
	}
	// At the compacted revision itself the previous values are deleted already; there is no revision 0.
	if _, err := s.read(ctx, &pb.RangeRequest{Key: s.key(clusterKey), Revision: min(max(after, 1), until), CountOnly: true}); err != nil {
		return nil, err
	}
	first, last := s.span(prefix)
	return s.past(ctx, first, last, after, until), nil
}

// past tells the changes of the keys in a range after one revision up to another, with what was there before.
func (s *Store) past(ctx context.Context, first, last []byte, after, until int64) *watch {
	w := s.newWatch(first, last, after)
	w.previous, w.until = true, until
	w.target = func() int64 { return until }
	if after < until {
		w.start(ctx, func() {})
		return w
	}
	ctx, w.stop = s.context(ctx)
	s.done.Add(1)
	go func() {
		defer s.done.Done()
		defer close(w.ch)
		defer w.stop()
		select {
		case w.ch <- store.Batch{Revision: after}:
		case <-ctx.Done():
		}
	}()
	return w
}
