package flowcontrol

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

// Limits bound how much may be under way at once. A unit is about the cost of a small request; see ListUnits,
// BodyUnits.
type Limits struct {
	Units int64 // for masters and nodes together, and as much again for everyone else
	Long  int64 // watches, followed logs, execs, counted in the same way
	// Users divides the share of everyone else: no user gets more than that fraction. A pod that uses all it can get
	// does not block the others.
	Users int64
	// Heaviest is the cost of the heaviest request.
	Heaviest int64
	// MaxWait is how long a request waits for its turn before it is refused.
	MaxWait time.Duration
}

// Default limits. The heaviest request takes a fourth of a user's part, so that the user can do more than one thing
// at a time.
var Default = Limits{Units: 400, Long: 4000, Users: 4, Heaviest: 400 / 4 / 4, MaxWait: 2 * time.Second}

// retryAfterSeconds is when a refused client may retry.
const retryAfterSeconds = 1

// share is the units of a group of users: in total, and for each user.
type share struct {
	all   *semaphore.Weighted
	each  int64 // of one user
	mu    sync.Mutex
	users map[string]*part // those with something under way or waiting
}

// part is one user's part of a share.
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

// take waits for units of the user's part, then of the whole share, each in order of arrival. With wait 0 it does not
// wait.
func (s *share) take(ctx context.Context, user string, units int64, wait time.Duration) (leave func(), ok bool) {
	p, until := s.part(user), time.Now().Add(wait)
	get := func(sem *semaphore.Weighted) bool {
		if sem.TryAcquire(units) { // nearly always, and it needs no timer
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

// Limiter bounds what is under way. Masters and nodes have a share of their own: a pod that sends requests in a loop
// does not block the cluster's owner.
type Limiter struct {
	limits      Limits
	short, long [2]*share
	inflight    atomic.Int64 // short ones
}

// NewLimiter returns a limiter with nothing under way.
func NewLimiter(l Limits) *Limiter {
	return &Limiter{limits: l,
		short: [2]*share{newShare(l.Units, l.Units), newShare(l.Units, l.Units/l.Users)},
		long:  [2]*share{newShare(l.Long, l.Long), newShare(l.Long, l.Long/l.Users)}}
}

// Inflight returns the number of short requests under way.
func (l *Limiter) Inflight() int64 { return l.inflight.Load() }

// Enter waits for a request's turn; leave gives its units back. A long request, which lasts as long as the client
// wants, does not wait, and is not counted as a short one. The error is 429.
func (l *Limiter) Enter(ctx context.Context, u registry.User, units int64, long bool) (leave func(), err error) {
	which := 1
	if slices.Contains(u.Groups, registry.GroupMasters) || slices.Contains(u.Groups, registry.GroupNodes) {
		which = 0
	}
	s, what, wait := l.short[which], "requests", l.limits.MaxWait
	if long {
		s, what, wait, units = l.long[which], "watches and streams", 0, 1
	}
	release, ok := s.take(ctx, u.Name, min(units, l.limits.Heaviest), wait)
	if !ok {
		return nil, tooMany(what)
	}
	if long {
		return release, nil
	}
	l.inflight.Add(1)
	return func() {
		l.inflight.Add(-1)
		release()
	}, nil
}

func tooMany(what string) error {
	return apierrors.NewTooManyRequests("too many "+what+" are under way: try again in a moment", retryAfterSeconds)
}

// What one unit pays for.
const (
	bytesPerUnit   = 64 << 10 // of a body, which takes some ten times as much when decoded
	objectsPerUnit = 500      // of a list
)

// ListUnits returns the cost of a list of that many objects.
func ListUnits(objects int64) int64 { return 1 + objects/objectsPerUnit }

// BodyUnits returns the cost of a body of that many bytes.
func BodyUnits(bytes int64) int64 { return 1 + bytes/bytesPerUnit }
