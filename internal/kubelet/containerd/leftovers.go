package containerd

import (
	"context"
	"time"
)

// leftover is something of an earlier run that could not be removed.
type leftover struct {
	what   string
	remove func(context.Context) error
}

const (
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
)

// remove removes something that an earlier run left, or keeps it for another try.
func (r *Runtime) remove(ctx context.Context, what string, f func(context.Context) error) {
	if err := f(ctx); err != nil {
		r.cfg.Log.Warn("what the last run left could not be removed; it is tried again", "what", what, "err", err)
		r.leftovers = append(r.leftovers, leftover{what, f})
	}
}

// removeLeftovers tries until nothing is left.
func (r *Runtime) removeLeftovers(ctx context.Context) {
	for wait := firstRetry; len(r.leftovers) > 0; wait = min(2*wait, lastRetry) {
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
		var left []leftover
		for _, l := range r.leftovers {
			if err := l.remove(ctx); err != nil {
				r.cfg.Log.Debug("what the last run left cannot be removed yet", "what", l.what, "err", err)
				left = append(left, l)
				continue
			}
			r.cfg.Log.Info("what the last run left is removed", "what", l.what)
		}
		r.leftovers = left
	}
}
