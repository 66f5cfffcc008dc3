package containerd

import (
	"context"
	"time"
)

// garbage is a leftover of an earlier run that could not be removed yet because it is busy.
type garbage struct {
	what   string
	remove func(context.Context) error
}

const (
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
)

// discard removes a leftover of an earlier run, or queues it for collectGarbage.
func (r *Runtime) discard(ctx context.Context, what string, f func(context.Context) error) {
	if err := f(ctx); err != nil {
		r.cfg.Log.Warn("what the last run left could not be removed, trying again", "what", what, "err", err)
		r.garbage = append(r.garbage, garbage{what, f})
	}
}

// collectGarbage retries until nothing is left, with a growing delay.
func (r *Runtime) collectGarbage(ctx context.Context) {
	for wait := firstRetry; len(r.garbage) > 0; wait = min(2*wait, lastRetry) {
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
		var left []garbage
		for _, l := range r.garbage {
			if err := l.remove(ctx); err != nil {
				r.cfg.Log.Warn("what the last run left cannot be removed yet, trying again", "what", l.what, "err", err)
				left = append(left, l)
				continue
			}
			r.cfg.Log.Info("what the last run left is removed", "what", l.what)
		}
		r.garbage = left
	}
}
