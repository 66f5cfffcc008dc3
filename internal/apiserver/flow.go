package apiserver

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/registry"
)

// How much may be under way at once. A unit is about what a small request costs; see weight.
const (
	maxUnits = 400  // of masters and nodes together, and as much again of everybody else
	maxLong  = 4000 // watches, followed logs, execs, counted in the same way
	// maxQueued is how long a request waits for its turn before it is sent away.
	maxQueued = 2 * time.Second
	// retryAfter is when a client that was sent away may come again.
	retryAfterSeconds = 1
)

// flow bounds what is under way, so that no number of clients can take the daemon's memory. Masters and
// nodes have a share of their own: a pod that asks in a loop does not keep the cluster's owner out.
type flow struct {
	short, long [2]*semaphore.Weighted
	queued      time.Duration
	under       atomic.Int64 // short ones under way
}

func newFlow() *flow {
	f := &flow{queued: maxQueued}
	for i := range f.short {
		f.short[i], f.long[i] = semaphore.NewWeighted(maxUnits), semaphore.NewWeighted(maxLong)
	}
	return f
}

// enter waits for a request's turn; leave gives its units back. What lasts as long as a client likes does not
// wait, and is not counted among the short ones.
func (f *flow) enter(ctx context.Context, u registry.User, units int64, long bool) (leave func(), err error) {
	share := 1
	if slices.Contains(u.Groups, registry.GroupMasters) || slices.Contains(u.Groups, registry.GroupNodes) {
		share = 0
	}
	if long {
		sem := f.long[share]
		if !sem.TryAcquire(1) {
			return nil, tooMany("watches and streams")
		}
		return func() { sem.Release(1) }, nil
	}
	sem := f.short[share]
	units = min(units, maxUnits)
	if !sem.TryAcquire(units) {
		ctx, cancel := context.WithTimeout(ctx, f.queued)
		defer cancel()
		if sem.Acquire(ctx, units) != nil {
			return nil, tooMany("requests")
		}
	}
	f.under.Add(1)
	return func() { f.under.Add(-1); sem.Release(units) }, nil
}

func tooMany(what string) error {
	return apierrors.NewTooManyRequests("too many "+what+" are under way: try again in a moment", retryAfterSeconds)
}

// What one unit pays for.
const (
	bytesPerUnit   = 64 << 10 // of a body, which is decoded into some ten times as much
	objectsPerUnit = 500      // of a list
)

// weight is how many units a request takes.
func (s *Server) weight(r *request, to route) int64 {
	switch to.verb {
	case "list", "deletecollection":
		n := int64(s.reg.Count(r.kind))
		if r.list.Limit > 0 && r.list.Labels == nil && r.list.Fields == nil {
			n = min(n, r.list.Limit)
		}
		return 1 + n/objectsPerUnit
	case "create", "update", "patch":
		n := r.Request().ContentLength
		if n < 0 || n > maxBody { // it does not say
			n = maxBody
		}
		return 1 + n/bytesPerUnit
	}
	return 1
}
