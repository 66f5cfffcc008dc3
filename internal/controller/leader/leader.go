package leader

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"minik8s/internal/client"
	"minik8s/internal/supervise"
)

// Raft says who leads among the members of the store.
type Raft interface {
	// Leads reports whether this member is the leader, as far as it knows. changed is closed at the next change of
	// leadership, or of what leads says.
	Leads() (leads bool, changed <-chan struct{})
}

// Elector runs led parts while this member leads.
type Elector struct {
	Raft            Raft
	Client          client.Interface
	Namespace, Name string // of the Lease
	// Identity is the name of this master in the Lease: its node's.
	Identity string
	Log      *slog.Logger
	// Standby, which may be nil, is called once, when this member is first found not to lead: it is then ready, and
	// waits.
	Standby func()
}

// Term is the time from the write that took the Lease to the end of the parts that run because of it.
type Term struct {
	// Lease is as this term's write made it. Its version is the fence of the term's writes.
	Lease *coordinationv1.Lease
	// Fell ends the term: a write found that the Lease has another version.
	Fell func()
}

// errEnded is the error of a lead that returned without one and without being told to.
var errEnded = errors.New("what this master leads ended without being told to")

// Why the context of a term ends, beside that of Run.
var (
	errMoved = errors.New("the leadership has moved")
	errFell  = errors.New("the Lease was changed or deleted")
)

const (
	minPause = 50 * time.Millisecond
	maxPause = time.Second
	// goodTerm is how long a term must last until a broken fence is again followed by no pause.
	goodTerm = 10 * time.Second
	// warnAfter is the failure in a row to take the Lease from which on each is a warning.
	warnAfter = 5
)

// Run calls lead for each term of this master, one after the other, until ctx ends. lead must return when its context
// ends: with ctx, when the leadership moves, or when the fence has fallen. If lead returns earlier, Run returns its
// error.
func (e *Elector) Run(ctx context.Context, lead func(ctx context.Context, t *Term) error) error {
	if e.Log == nil {
		e.Log = slog.New(slog.DiscardHandler)
	}
	standby := sync.OnceFunc(func() {
		if e.Standby != nil {
			e.Standby()
		}
	})
	var again retry
	for ctx.Err() == nil {
		leads, changed := e.Raft.Leads()
		if leads {
			select {
			case <-changed: // already: in a store that fails it may seem to change all the time
				again.wait(ctx)
			default:
			}
			if err := e.reign(ctx, changed, &again, lead); err != nil {
				return err
			}
			continue
		}
		again = retry{}
		standby()
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return nil
}

// reign has one term, or fails to have one. It ends at the latest when the leadership changes, also if this member is
// elected again: another may have led meanwhile. The error is that of a lead which returned by itself.
func (e *Elector) reign(run context.Context, changed <-chan struct{}, again *retry, lead func(ctx context.Context, t *Term) error) error {
	ctx, stop := context.WithCancelCause(run)
	defer stop(nil)
	go func() {
		select {
		case <-changed:
			stop(errMoved)
		case <-ctx.Done():
		}
	}()
	lease, err := e.take(ctx)
	switch {
	case run.Err() != nil:
		return nil
	case err != nil:
		again.failures++
		level := slog.LevelDebug
		if again.failures >= warnAfter {
			level = slog.LevelWarn
		}
		e.Log.Log(ctx, level, "the Lease cannot be taken", "lease", e.Name, "failures", again.failures, "error", err)
		again.wait(ctx)
		return nil
	}
	again.failures = 0
	began := time.Now()
	fell, err := e.term(ctx, lease, lead)
	if ctx.Err() != nil {
		return nil
	}
	if !fell {
		return cmp.Or(err, errEnded)
	}
	if time.Since(began) > goodTerm {
		again.pause = 0
	}
	again.wait(ctx)
	return nil
}

// term runs lead. fell says that the term ended because its fence fell; its context may have ended as well. err is lead's.
func (e *Elector) term(ctx context.Context, lease *coordinationv1.Lease, lead func(ctx context.Context, t *Term) error) (fell bool, err error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	t := &Term{Lease: lease, Fell: func() { stop(errFell) }}
	e.Log.Debug("this master leads", "lease", e.Name, "version", lease.ResourceVersion)
	err = supervise.Safe(func() error { return lead(ctx, t) })
	if ctx.Err() == nil {
		return false, err
	}
	cause := context.Cause(ctx)
	fell = errors.Is(cause, errFell)
	switch {
	case fell:
		e.Log.Warn("this master stopped what it leads, because its Lease was changed by others; if it still leads, it takes the Lease again", "lease", e.Name)
	case errors.Is(cause, errMoved):
		e.Log.Info("this master stopped what it leads, because the leadership has moved", "lease", e.Name)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		e.Log.Warn("what this master led did not end well", "lease", e.Name, "error", err)
	}
	return fell, err
}

// retry is the pause before another try: none at first, then more and more.
type retry struct {
	pause    time.Duration
	failures int // in a row, to take the Lease
}

func (r *retry) wait(ctx context.Context) {
	d := r.pause
	if r.pause = min(max(2*d, minPause), maxPause); d == 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
