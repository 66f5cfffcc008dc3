package local

import (
	"context"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/registry"
)

// Watch implements client.Interface.
func (c *Client) Watch(ctx context.Context, kind *api.Kind, opts client.WatchOptions) (client.Watcher, error) {
	ro := registry.WatchOptions{Labels: opts.Labels, Bookmarks: opts.Bookmarks, InitialEnd: opts.Bookmarks, Initial: opts.ResourceVersion == ""}
	if opts.ResourceVersion != "" {
		rev, err := strconv.ParseInt(opts.ResourceVersion, 10, 64)
		if err != nil || rev < 0 {
			return nil, apierrors.NewBadRequest("resourceVersion: not a number: " + strconv.Quote(opts.ResourceVersion))
		}
		ro.Revision = rev
	}
	ctx, cancel := context.WithCancel(ctx)
	q := c.of("watch", kind, opts.Namespace, opts.Fields)
	rw, err := c.reg.Watch(ctx, q, ro)
	if err != nil {
		cancel()
		return nil, err
	}
	w := &watcher{ch: make(chan client.Event), stop: cancel}
	go w.run(ctx, q, rw)
	return w, nil
}

type watcher struct {
	ch   chan client.Event
	stop context.CancelFunc
	err  error // written before ch closes
}

// Events implements client.Watcher.
func (w *watcher) Events() <-chan client.Event { return w.ch }

// Stop implements client.Watcher.
func (w *watcher) Stop() { w.stop() }

// Err implements client.Watcher.
func (w *watcher) Err() error { return w.err }

func (w *watcher) run(ctx context.Context, q *registry.Request, rw *registry.Watch) {
	defer close(w.ch)
	for {
		events, err := rw.Next(ctx)
		if err != nil {
			w.err = err
			return
		}
		for _, e := range events {
			out := client.Event{Type: e.Type, ResourceVersion: strconv.FormatInt(e.Revision, 10), InitialEnd: e.InitialEnd}
			if e.Entry != nil {
				out.Object = q.Shown(e.Entry)
			}
			select {
			case w.ch <- out:
			case <-ctx.Done():
				return
			}
		}
		if ctx.Err() != nil {
			return
		}
	}
}
