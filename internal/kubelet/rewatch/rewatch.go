// Package rewatch follows a kind of objects by watches that are opened again whenever they break.
//
// It promises: as long as ctx lives there is a watch, or a pause before the next one, which doubles from 100 ms
// to 5 s while watches fail. Each new watch begins with the present state, so that nothing is missed; the
// caller must take that as the whole truth. Nothing survives a kill -9, nor need it.
//
// The kubelet uses it for the pods of its node and for its Node. What needs a cache of a kind uses package
// informer instead.
package rewatch

import (
	"context"
	"log/slog"
	"time"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

const (
	minPause = 100 * time.Millisecond
	maxPause = 5 * time.Second
)

// Follow opens a watch again and again until ctx ends, and hands each to follow. follow reads it to its end and
// says whether it got as far as the present state, so that the next may be opened soon.
func Follow(ctx context.Context, c client.Interface, log *slog.Logger, kind *api.Kind, opts client.WatchOptions, follow func(client.Watcher) bool) {
	pause := minPause
	for ctx.Err() == nil {
		w, err := c.Watch(ctx, kind, opts)
		if err == nil {
			if follow(w) {
				pause = minPause
			}
			w.Stop()
			err = w.Err()
		}
		if ctx.Err() != nil {
			return
		}
		log.Info("watch ended, beginning it again", "kind", kind.String(), "error", err, "in", pause)
		Pause(ctx, pause)
		pause = min(2*pause, maxPause)
	}
}

// Pause waits for d, or for the end of ctx.
func Pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
