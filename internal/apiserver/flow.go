package apiserver

import (
	"context"
	"slices"
	"sync"
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
	// perUser is the part of everybody else's that one user may take: a quarter. A pod that holds all it can
	// get does not keep the others out.
	perUser = 4
	// maxQueued is how long a request waits for its turn before it is sent away.
	maxQueued = 2 * time.Second
	// retryAfter is when a client that was sent away may come again.
	retryAfterSeconds = 1
)

// share is what a number of users have between them, and each of them.
type share struct {
	all  *semaphore.Weighted
	each int64 // of one user
	mu   sync.Mutex
	has  map[string]int64 // units by user; those who have none are not in it
}

func newShare(size, each int64) *share {
	return &share{all: semaphore.NewWeighted(size), each: each, has: map[string]int64{}}
}

// take counts units for a user, unless that is more than one may have. A request that is larger than that by
// itself takes all of it.
func (s *share) take(user string, units int64) (int64, bool) {
	units = min(units, s.each)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.has[user]+units > s.each {
		return 0, false
	}
	s.has[user] += units
	return units, true
}

func (s *share) put(user string, units int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.has[user] -= units; s.has[user] <= 0 {
		delete(s.has, user)
	}
}

// flow bounds what is under way, so that no number of clients can take the daemon's memory. Masters and
// nodes have a share of their own: a pod that asks in a loop does not keep the cluster's owner out.
type flow struct {
	short, long [2]*share
	queued      time.Duration
	under       atomic.Int64 // short ones under way
}

func newFlow() *flow {
	return &flow{queued: maxQueued,
		short: [2]*share{newShare(maxUnits, maxUnits), newShare(maxUnits, maxUnits/perUser)},
		long:  [2]*share{newShare(maxLong, maxLong), newShare(maxLong, maxLong/perUser)}}
}

// enter waits for a request's turn; leave gives its units back. What lasts as long as a client likes does not
// wait, and is not counted among the short ones.
func (f *flow) enter(ctx context.Context, u registry.User, units int64, long bool) (leave func(), err error) {
	which := 1
	if slices.Contains(u.Groups, registry.GroupMasters) || slices.Contains(u.Groups, registry.GroupNodes) {
		which = 0
	}
	s, what := f.short[which], "requests"
	if long {
		s, what, units = f.long[which], "watches and streams", 1
	}
	units, ok := s.take(u.Name, units)
	if !ok {
		return nil, tooMany(what + " of " + u.Name)
	}
	if !s.all.TryAcquire(units) {
		queued, cancel := context.WithTimeout(ctx, f.queued)
		defer cancel()
		if long || s.all.Acquire(queued, units) != nil {
			s.put(u.Name, units)
			return nil, tooMany(what)
		}
	}
	if !long {
		f.under.Add(1)
	}
	return func() {
		if !long {
			f.under.Add(-1)
		}
		s.all.Release(units)
		s.put(u.Name, units)
	}, nil
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
