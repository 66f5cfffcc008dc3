package containerd

import (
	"context"
	"log/slog"
	"time"
)

// garbage is what earlier runs have left and could not be removed yet, because it is busy. Only one goroutine uses it at
// a time: the start, and then collect's.
type garbage struct {
	log  *slog.Logger
	list []leftover
}

type leftover struct {
	what   string
	remove func(context.Context) error
}

const (
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
)

// discard removes a leftover, or queues it for collect.
func (g *garbage) discard(ctx context.Context, what string, remove func(context.Context) error) {
	if err := remove(ctx); err != nil {
		g.log.Warn("what the last run left could not be removed, trying again", "what", what, "err", err)
		g.list = append(g.list, leftover{what, remove})
	}
}

// collect retries until nothing is left, with a growing delay.
func (g *garbage) collect(ctx context.Context) {
	for wait := firstRetry; len(g.list) > 0; wait = min(2*wait, lastRetry) {
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
		var left []leftover
		for _, l := range g.list {
			if err := l.remove(ctx); err != nil {
				g.log.Warn("what the last run left cannot be removed yet, trying again", "what", l.what, "err", err)
				left = append(left, l)
				continue
			}
			g.log.Info("what the last run left is removed", "what", l.what)
		}
		g.list = left
	}
}
