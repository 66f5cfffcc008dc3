package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	etcderrors "go.etcd.io/etcd/server/v3/etcdserver/errors"
	"go.etcd.io/raft/v3"

	"minik8s/internal/store"
)

const (
	// patience is how long a request waits and is repeated while the members have no leader or another one than before.
	patience = 5 * time.Second
	// readLimit and writeLimit are how long one attempt waits. A message to the leader may be lost without a change of
	// leader. A write may also wait for slow disks, and to repeat it gives them more to do.
	readLimit  = 2 * time.Second
	writeLimit = 4 * time.Second
	// retryPause is how long a request waits for a leader before it asks again.
	retryPause = 20 * time.Millisecond
)

// do calls f with the member that runs, and again as long as it fails because the leader is lost or changes, for at most
// patience. f's context ends when the leader changes, because the answer of a leader that is lost may never come.
func (s *Store) do(ctx context.Context, f func(context.Context, *member) error) error {
	return s.within(ctx, readLimit, f)
}

// within is do with another limit for one attempt.
func (s *Store) within(ctx context.Context, limit time.Duration, f func(context.Context, *member) error) error {
	began := time.Now()
	for {
		m, release, err := s.use(ctx, began.Add(patience))
		if err != nil {
			return err
		}
		err = m.during(ctx, earlier(time.Now().Add(limit), began.Add(patience)), f)
		release()
		if err == nil || !passing(ctx, err) {
			return err
		}
		if time.Since(began) >= patience || closed(s.quit) {
			return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
		}
		t := time.NewTimer(retryPause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// during calls f with a context that ends with the reign, and at a time. A member alone is never led by another. A server
// that has ended by itself, because the member was removed, is not asked any more.
func (m *member) during(ctx context.Context, until time.Time, f func(context.Context, *member) error) error {
	if closed(m.server.StoppingNotify()) {
		return etcderrors.ErrStopped
	}
	if m.alone {
		return f(ctx, m)
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	defer context.AfterFunc(m.reign.Load(), cancel)()
	return f(ctx, m)
}

// attached calls f, which uses the database itself: a server that ends by itself waits for f before it closes it. The error
// is ErrStopped if the server has ended.
func attached[T any](m *member, f func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	done := make(chan answer, 1)
	m.server.GoAttach(func() {
		v, err := f()
		done <- answer{v, err}
	})
	var none T
	select {
	case a := <-done:
		return a.value, a.err
	case <-m.server.StoppingNotify():
		return none, etcderrors.ErrStopped
	}
}

// ended reports whether the member was stopped.
func (m *member) ended() bool { return closed(m.ending) }

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// passing reports whether an error comes from a leader that is lost or changes, so that another attempt may succeed;
// ctx is the caller's own.
func passing(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	for _, e := range []error{rpctypes.ErrGRPCNoLeader, rpctypes.ErrGRPCNotLeader, rpctypes.ErrGRPCLeaderChanged, rpctypes.ErrGRPCStopped,
		rpctypes.ErrGRPCTimeout, rpctypes.ErrGRPCTimeoutDueToLeaderFail, rpctypes.ErrGRPCTimeoutDueToConnectionLost,
		rpctypes.ErrGRPCCanceled, rpctypes.ErrTooManyRequests, context.Canceled, context.DeadlineExceeded,
		etcderrors.ErrNoLeader, etcderrors.ErrNotLeader, etcderrors.ErrLeaderChanged, etcderrors.ErrStopped, etcderrors.ErrTimeout,
		etcderrors.ErrTimeoutDueToLeaderFail, etcderrors.ErrTimeoutDueToConnectionLost, etcderrors.ErrCanceled, etcderrors.ErrUnhealthy} {
		if errors.Is(err, e) {
			return true
		}
	}
	return dropped(err) || strings.Contains(err.Error(), raft.ErrStopped.Error()) // etcd passes it on as text
}

// dropped reports whether a write was never given to a leader, because there was none. etcd has no error of its own for
// it.
func dropped(err error) bool { return strings.Contains(err.Error(), raft.ErrProposalDropped.Error()) }

// current returns once this member has all that was acknowledged before the call. A member alone always has.
func (m *member) current(ctx context.Context) error {
	if m.alone {
		return nil
	}
	_, err := m.kv.Range(ctx, &pb.RangeRequest{Key: []byte{0}, CountOnly: true})
	return err
}
