package external

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"minik8s/internal/store"
)

const (
	// patience is how long a request is repeated while etcd is away or has no leader.
	patience = 5 * time.Second
	// readLimit and writeLimit are how long one attempt waits: the member that has it may have been cut off. A write may also
	// wait for slow disks, and to repeat it gives them more to do.
	readLimit  = 2 * time.Second
	writeLimit = 4 * time.Second
	// minPause and maxPause are between two attempts.
	minPause, maxPause = 10 * time.Millisecond, 100 * time.Millisecond
)

// do calls f, and again as long as it fails because etcd is away or changes its leader, for at most patience.
func (s *Store) do(ctx context.Context, limit time.Duration, f func(context.Context) error) error {
	began := time.Now()
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		try, cancel := context.WithTimeout(ctx, min(limit, patience-time.Since(began)))
		err := f(try)
		cancel()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !passing(err):
			return wrap(err)
		case time.Since(began)+pause >= patience || s.closed():
			return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
		}
		if !sleep(ctx, pause) {
			return ctx.Err()
		}
	}
}

func (s *Store) closed() bool { return s.life.Err() != nil }

// sleep waits, and returns false if ctx ends before.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// passing reports whether an error comes from an etcd that is away or that changes its leader, so that another attempt may
// succeed.
func passing(err error) bool {
	if errors.Is(err, store.ErrUnknown) {
		return false
	}
	switch code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Internal, codes.Aborted:
		return true
	}
	// The next attempt goes to another member.
	return dropped(err) || is(err, rpctypes.ErrGRPCRequestTooManyRequests) || is(err, rpctypes.ErrGRPCNotSupportedForLearner)
}

// certain reports whether a write that failed was not carried out and never will be: etcd says that it refused it. What is
// said by the way there, or while the leader is lost, says nothing about that. Nor does it that etcd is full: the write that
// it is full of was carried out, and has the same answer.
func certain(err error) bool {
	if is(err, rpctypes.ErrGRPCNoSpace) {
		return false
	}
	switch code(err) {
	case codes.ResourceExhausted, codes.InvalidArgument, codes.FailedPrecondition, codes.OutOfRange, codes.NotFound,
		codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented, codes.DataLoss:
		return true
	}
	return dropped(err)
}

// code is that of gRPC; OK for an error that is not gRPC's.
func code(err error) codes.Code {
	if st, ok := status.FromError(err); ok {
		return st.Code()
	}
	return codes.OK
}

// dropped reports whether a write was never given to a leader, because there was none. etcd has no error of its own for
// it.
func dropped(err error) bool { return strings.Contains(err.Error(), "raft proposal dropped") }

// is reports whether an error is one of etcd's.
func is(err, etcds error) bool { return rpctypes.ErrorDesc(err) == rpctypes.ErrorDesc(etcds) }

// wrap turns etcd's errors into the store's.
func wrap(err error) error {
	switch {
	case err == nil, errors.Is(err, store.ErrUnknown):
		return err
	case is(err, rpctypes.ErrGRPCCompacted):
		return store.ErrCompacted
	case is(err, rpctypes.ErrGRPCNoSpace):
		return store.ErrNoSpace
	case is(err, rpctypes.ErrGRPCRequestTooLarge):
		return store.ErrTooLarge
	case code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "larger than max"): // gRPC's own limit, here or there
		return store.ErrTooLarge
	}
	return err
}
