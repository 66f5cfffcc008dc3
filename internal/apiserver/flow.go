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
	// maxWeight is what the heaviest request takes: a fourth of a user's part, so that one can do more than one
	// thing at a time.
	maxWeight = maxUnits / perUser / 4
	// maxQueued is how long a request waits for its turn before it is sent away.
	maxQueued = 2 * time.Second
	// retryAfter is when a client that was sent away may come again.
	retryAfterSeconds = 1
)

// share is what a number of users have between them, and each of them.
type share struct {
	all   *semaphore.Weighted
	each  int64 // of one user
	mu    sync.Mutex
	users map[string]*part // those who have something under way or wait for it
}

// part is what one user has of a share.
type part struct {
	sem  *semaphore.Weighted
	refs int
}

func newShare(size, each int64) *share {
	return &share{all: semaphore.NewWeighted(size), each: each, users: map[string]*part{}}
}

func (s *share) part(user string) *part {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.users[user]
	if p == nil {
		p = &part{sem: semaphore.NewWeighted(s.each)}
		s.users[user] = p
	}
	p.refs++
	return p
}

func (s *share) done(user string, p *part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.refs--; p.refs == 0 {
		delete(s.users, user)
	}
}

// take waits for units of a user's part and of the whole, in this order and in turn; with wait 0 it does not wait.
func (s *share) take(ctx context.Context, user string, units int64, wait time.Duration) (leave func(), ok bool) {
	p, until := s.part(user), time.Now().Add(wait)
	get := func(sem *semaphore.Weighted) bool {
		if sem.TryAcquire(units) { // nearly always: it costs no timer
			return true
		}
		if wait == 0 {
			return false
		}
		ctx, cancel := context.WithDeadline(ctx, until)
		defer cancel()
		return sem.Acquire(ctx, units) == nil
	}
	if !get(p.sem) {
		s.done(user, p)
		return nil, false
	}
	if !get(s.all) {
		p.sem.Release(units)
		s.done(user, p)
		return nil, false
	}
	return func() {
		s.all.Release(units)
		p.sem.Release(units)
		s.done(user, p)
	}, true
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
	s, what, wait := f.short[which], "requests", f.queued
	if long {
		s, what, wait, units = f.long[which], "watches and streams", 0, 1
	}
	give, ok := s.take(ctx, u.Name, min(units, maxWeight), wait)
	if !ok {
		return nil, tooMany(what)
	}
	if long {
		return give, nil
	}
	f.under.Add(1)
	return func() {
		f.under.Add(-1)
		give()
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
