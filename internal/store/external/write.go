package external

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"minik8s/internal/store"
	"minik8s/internal/store/etcd/txn"
)

// The fence is one key for all masters, and each write has the guard that it is unchanged. A write that got no answer may
// still be under way: in a connection, in a member of etcd that was stopped, in its log. Before it is made again the fence
// is changed. From then on the first attempt has been carried out, or never is, so that the history of its keys tells which.
// The others' writes that are under way are refused for the fence, too; they learn its new revision and are made again.

// settleLimit is how long one attempt waits to find out what became of a write: the next may go to another member.
const settleLimit = 500 * time.Millisecond

// Write implements store.Store, as one transaction of etcd's.
func (s *Store) Write(ctx context.Context, changes ...store.Change) (int64, error) {
	w := attempt{changes: changes, req: txn.Of(changes, s.key), since: s.seen.Load()}
	err := s.do(ctx, writeLimit, func(try context.Context) error {
		settled, err := s.attempt(ctx, try, &w)
		if !settled || !passing(err) {
			return err
		}
		// etcd answers again, and most of the write's patience may be gone.
		try, cancel := context.WithTimeout(ctx, readLimit)
		defer cancel()
		_, err = s.attempt(ctx, try, &w)
		return err
	})
	switch {
	case err != nil && w.open && !errors.Is(err, store.ErrUnknown):
		return 0, errors.Join(store.ErrUnknown, err)
	case err != nil:
		return 0, err
	case w.revision != 0:
		return w.revision, nil
	}
	return 0, txn.Refusal(changes, w.resp)
}

// attempt makes the transaction, in the time of try, and finds out what became of it, which has patience of its own: settled
// says that this was in doubt, and that it was not carried out.
func (s *Store) attempt(ctx, try context.Context, w *attempt) (settled bool, err error) {
	err = s.propose(try, w)
	if !w.open {
		return false, err
	}
	if unsettled := s.do(ctx, settleLimit, func(ctx context.Context) error { return s.settle(ctx, w) }); unsettled != nil {
		return false, errors.Join(store.ErrUnknown, err, unsettled)
	}
	if w.revision != 0 {
		return false, nil
	}
	return true, err
}

// attempt is a write on its way.
type attempt struct {
	changes []store.Change
	req     *pb.TxnRequest
	since   int64 // a revision before the first attempt
	// open says that there was an attempt, under the fence, that was carried out or may still be. Once it was answered it is
	// not under way any more.
	open, answered bool
	fence          int64
	// revision is that of the write, once it was carried out; resp says why it was refused.
	revision int64
	resp     *pb.TxnResponse
}

// settle finds out what became of the open attempt.
func (s *Store) settle(ctx context.Context, w *attempt) (err error) {
	var until int64
	if w.answered {
		until, err = s.barrier.wait(ctx, s.ask)
	} else if err = s.fenceOff(ctx, w.fence); err == nil {
		until = s.fence.Load()
	}
	if err != nil {
		return err
	}
	if w.revision, err = s.happened(ctx, w.changes, w.since, until); err == nil {
		w.open = false
	}
	return err
}

// fenceOff has no write be carried out any more that was proposed under a fence, or an older one. One change does for all
// that wait for it. It is a write like others, and may fail like others.
func (s *Store) fenceOff(ctx context.Context, fence int64) error {
	select {
	case s.fencing <- struct{}{}:
		defer func() { <-s.fencing }()
	case <-ctx.Done():
		return statusOf(ctx.Err())
	}
	if s.fence.Load() > fence {
		return nil
	}
	// Another master may have changed it, or an earlier attempt whose answer came too late, as with slow disks.
	before := s.seen.Load()
	have, err := s.kv.Range(ctx, &pb.RangeRequest{Key: s.key(fenceKey), KeysOnly: true})
	if err == nil {
		err = s.since(before, have.Header)
	}
	if err != nil {
		return err
	}
	if len(have.Kvs) > 0 && have.Kvs[0].ModRevision > fence {
		raise(&s.fence, have.Kvs[0].ModRevision)
		return nil
	}
	resp, err := s.txn(ctx, &pb.TxnRequest{Success: []*pb.RequestOp{txn.Put(s.key(fenceKey), nil)}})
	switch {
	case err != nil:
		return err
	case resp.Header.Revision <= fence:
		return s.another("went from revision %d back to %d; was a backup put back?", fence, resp.Header.Revision)
	}
	raise(&s.fence, resp.Header.Revision)
	return nil
}

// statusOf makes an error of a context look like gRPC's.
func statusOf(err error) error { return status.FromContextError(err).Err() }

// propose makes a transaction under the fence, and again if that has changed meanwhile: then it was refused for that.
func (s *Store) propose(ctx context.Context, w *attempt) error {
	for {
		w.fence = s.fence.Load()
		var to peer.Peer // no address: the request never had a connection
		resp, err := s.txn(ctx, s.under(w.fence, w.req), grpc.Peer(&to))
		switch {
		case err != nil && resp != nil:
			w.open, w.answered = resp.Succeeded, true
			return err
		case err != nil:
			w.open, w.answered = to.Addr != nil && !certain(err), is(err, rpctypes.ErrGRPCNoSpace)
			return err
		}
		if resp.Succeeded {
			w.revision = resp.Header.Revision
			return nil
		}
		switch now := txn.Modified(resp.Responses[len(resp.Responses)-1]); {
		case now == w.fence:
			w.resp = resp
			return nil
		case now < w.fence: // somebody has removed it
			if err := s.fenceOff(ctx, w.fence); err != nil {
				return err
			}
		default:
			raise(&s.fence, now)
		}
	}
}

// under is a transaction with the guard that the fence is unchanged, and if it fails a read of the fence after all others.
func (s *Store) under(fence int64, req *pb.TxnRequest) *pb.TxnRequest {
	return txn.Under(req, s.key(fenceKey), fence)
}

// happened tells whether changes were carried out after the revision since, when no attempt is under way any more, and none
// was carried out after until: the revision at which they were, 0 if they were not, store.ErrUnknown if that cannot be
// told. The history of the first key that is set has it. Of a removal nobody knows whose it was.
func (s *Store) happened(ctx context.Context, changes []store.Change, since, until int64) (int64, error) {
	i := slices.IndexFunc(changes, func(c store.Change) bool { return c.Action == store.Set })
	if i < 0 {
		i = slices.IndexFunc(changes, func(c store.Change) bool { return c.Action == store.Remove })
	}
	if i < 0 {
		return 0, nil // guards alone
	}
	c := &changes[i]
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	h := s.past(ctx, s.key(c.Key), nil, since, until)
	for batch := range h.Batches() {
		for _, e := range batch.Events {
			was := int64(0)
			if e.Prev != nil {
				was = e.Prev.Modified
			}
			switch {
			case c.Check(was) != nil: // the guard did not hold
			case c.Action == store.Remove && e.Type == store.Deletion:
				return 0, store.ErrUnknown
			case c.Action == store.Set && e.Type == store.Put && bytes.Equal(e.KV.Value, c.Value):
				return e.KV.Modified, nil
			}
		}
	}
	switch err := h.Err(); {
	case errors.Is(err, store.ErrCompacted):
		return 0, store.ErrUnknown
	case err != nil:
		return 0, err
	case ctx.Err() != nil:
		return 0, statusOf(ctx.Err())
	case h.after.Load() < until:
		return 0, fmt.Errorf("%w: the store is closed", store.ErrUnknown)
	}
	return 0, nil
}
