package leader

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/supervise"
)

// The times of a Lease.
const (
	Duration   = 15 * time.Second // for how long it is held after a renewal
	RenewEvery = 10 * time.Second // how often its holder renews it
	RetryEvery = 2 * time.Second  // how often others look, and a holder whose renewal failed tries again
	// warnAfter is the failure in a row, while it waits for the Lease, from which on each is a warning.
	warnAfter = 5
	// margin is how much earlier than others a holder regards the Lease as lost.
	margin = time.Second
)

// Elector runs a function while it holds a Lease.
type Elector struct {
	Client          client.Interface
	Namespace, Name string // of the Lease
	// Identity is unique to this master, and the same after a restart.
	Identity string
	Log      *slog.Logger
	// Standby, which may be nil, is called once, when another master is found to hold the Lease: this one is then
	// ready, and waits.
	Standby func()
	// Now and Sleep may be nil; tests set them. Sleep returns early, with an error, when ctx ends.
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration) error

	seen   string // the version of the Lease that was last seen
	seenAt time.Time
}

// ErrLost says that the Lease could not be renewed in time.
var ErrLost = errors.New("the lease was lost")

// Run waits for the Lease, then runs lead until it returns, ctx ends or the Lease is lost; lead's
// context ends then. It returns lead's error, or ErrLost.
func (e *Elector) Run(ctx context.Context, lead func(ctx context.Context) error) error {
	e.fill()
	since, ok := e.acquire(ctx)
	if !ok {
		return nil
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	done := make(chan error, 1)
	go func() { done <- supervise.Safe(func() error { return lead(ctx) }) }()
	lost := make(chan struct{})
	go func() {
		defer close(lost)
		e.hold(ctx, since)
		stop(ErrLost)
	}()
	err := <-done
	wasLost := errors.Is(context.Cause(ctx), ErrLost)
	stop(nil)
	<-lost
	if wasLost {
		return ErrLost
	}
	e.release(context.WithoutCancel(ctx))
	return err
}

func (e *Elector) fill() {
	if e.Log == nil {
		e.Log = slog.New(slog.DiscardHandler)
	}
	if e.Now == nil {
		e.Now = time.Now
	}
	if e.Sleep == nil {
		e.Sleep = sleep
	}
	if e.Standby == nil {
		e.Standby = func() {}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// acquire waits for the Lease; false if ctx ended before. since is the time just before the write, not of the answer:
// others may have seen the write long before the answer came.
func (e *Elector) acquire(ctx context.Context) (since time.Time, ok bool) {
	standby := sync.OnceFunc(e.Standby)
	for failures := 1; ; failures++ {
		since = e.Now()
		held, err := e.try(ctx)
		switch {
		case held:
			return since, true
		case err == nil:
			failures = 0
			standby()
		case ctx.Err() == nil:
			level := slog.LevelDebug
			if failures >= warnAfter {
				level = slog.LevelWarn
			}
			e.Log.Log(ctx, level, "the lease cannot be read or written", "lease", e.Name, "failures", failures, "error", err)
		}
		if e.Sleep(ctx, RetryEvery) != nil {
			return since, false
		}
	}
}

// hold renews the Lease, which was written at renewed, until ctx ends or the Lease has to be regarded as lost.
func (e *Elector) hold(ctx context.Context, renewed time.Time) {
	wait := max(0, renewed.Add(RenewEvery).Sub(e.Now()))
	for e.Sleep(ctx, wait) == nil {
		started := e.Now()
		left := renewed.Add(Duration - margin).Sub(started)
		if left <= 0 {
			return
		}
		limited, cancel := context.WithTimeout(ctx, left)
		held, err := e.try(limited)
		cancel()
		switch {
		case held:
			renewed, wait = started, max(0, started.Add(RenewEvery).Sub(e.Now()))
			continue
		case err == nil: // another master holds it
			return
		}
		if ctx.Err() == nil {
			e.Log.Warn("the lease was not renewed", "lease", e.Name, "error", err)
		}
		wait = min(RetryEvery, max(renewed.Add(Duration-margin).Sub(e.Now()), 0))
	}
}

// try takes or renews the Lease. Without an error, held says whether this master holds it.
func (e *Elector) try(ctx context.Context) (held bool, err error) {
	lease, err := client.Get[*coordinationv1.Lease](ctx, e.Client, client.Key{Kind: api.Leases, Namespace: e.Namespace, Name: e.Name})
	if apierrors.IsNotFound(err) {
		_, err = e.Client.Create(ctx, e.next(nil), client.WriteOptions{})
		if apierrors.IsAlreadyExists(err) {
			return false, nil
		}
		return err == nil, err
	}
	if err != nil {
		return false, err
	}
	if e.seen != lease.ResourceVersion {
		e.seen, e.seenAt = lease.ResourceVersion, e.Now()
	}
	if e.others(lease) {
		return false, nil
	}
	_, err = e.Client.Update(ctx, e.next(lease), client.WriteOptions{})
	return err == nil, err
}

// others reports whether another master holds the Lease, as far as can be known.
func (e *Elector) others(l *coordinationv1.Lease) bool {
	holder := l.Spec.HolderIdentity
	if holder == nil || *holder == "" || *holder == e.Identity {
		return false
	}
	d := Duration
	if s := l.Spec.LeaseDurationSeconds; s != nil {
		d = time.Duration(*s) * time.Second
	}
	return e.Now().Before(e.seenAt.Add(d))
}

// next is the Lease as we want it; its resourceVersion guards the write.
func (e *Elector) next(old *coordinationv1.Lease) *coordinationv1.Lease {
	now := metav1.NewMicroTime(e.Now())
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name}}
	if old != nil {
		l = old.DeepCopy()
	}
	if h := l.Spec.HolderIdentity; h == nil || *h != e.Identity {
		transitions := int32(0)
		if t := l.Spec.LeaseTransitions; t != nil {
			transitions = *t + 1
		}
		l.Spec.LeaseTransitions, l.Spec.AcquireTime = &transitions, &now
	}
	seconds, id := int32(Duration/time.Second), e.Identity
	l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds, l.Spec.RenewTime = &id, &seconds, &now
	return l
}

// release gives up the Lease, so that another master need not wait for it to expire.
func (e *Elector) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, RetryEvery)
	defer cancel()
	lease, err := client.Get[*coordinationv1.Lease](ctx, e.Client, client.Key{Kind: api.Leases, Namespace: e.Namespace, Name: e.Name})
	if err != nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != e.Identity {
		return
	}
	upd := lease.DeepCopy()
	upd.Spec.HolderIdentity = nil
	if _, err := e.Client.Update(ctx, upd, client.WriteOptions{}); err != nil {
		e.Log.Debug("the lease was not given back", "lease", e.Name, "error", err)
	}
}
