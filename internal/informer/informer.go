// Package informer keeps a part's view of one kind: a list at a revision, then the watch that follows
// it, and a list again when the history is gone.
//
// It promises: Get and List answer from memory; every change of an object is seen once by each
// handler, in order, also those that happened while a broken watch was opened again (as the difference
// between the lists); after an error it goes on by itself, with back-off. It never dies silently: Run
// returns only when ctx ends.
//
// Handlers must not work, only note what is to be done (a work queue). The objects are shared: never
// change them. Any part may use it, over either client. Nothing of it survives a kill -9, nor need it.
package informer

import (
	"context"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// Options selects what an informer sees.
type Options struct {
	Namespace string
	Labels    labels.Selector
	Fields    fields.Selector
	Log       *slog.Logger
}

// Handler is told of a change: old is the zero T for a new object, now is the zero T for a deleted one.
type Handler[T api.Object] func(old, now T)

// Informer is a part's view of one kind.
type Informer[T api.Object] struct {
	client client.Interface
	kind   *api.Kind
	opts   Options

	mu       sync.RWMutex
	objects  map[string]T
	handlers []Handler[T]
	synced   bool
}

// New makes an informer; Run fills it.
func New[T api.Object](c client.Interface, kind *api.Kind, opts Options) *Informer[T] {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	return &Informer[T]{client: c, kind: kind, opts: opts, objects: map[string]T{}}
}

// OnChange adds a handler; before Run only.
func (i *Informer[T]) OnChange(h Handler[T]) { i.handlers = append(i.handlers, h) }

// Get is one object; false if there is none.
func (i *Informer[T]) Get(namespace, name string) (T, bool) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	obj, ok := i.objects[mapKey(namespace, name)]
	return obj, ok
}

// List is every object, in no order.
func (i *Informer[T]) List() []T {
	i.mu.RLock()
	defer i.mu.RUnlock()
	out := make([]T, 0, len(i.objects))
	for _, obj := range i.objects {
		out = append(out, obj)
	}
	return out
}

// Len is how many objects there are.
func (i *Informer[T]) Len() int {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return len(i.objects)
}

func mapKey(namespace, name string) string { return namespace + "/" + name }

const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = 10 * time.Second
)

// Run lists and watches until ctx ends; ready is called after the first list.
func (i *Informer[T]) Run(ctx context.Context, ready func()) error {
	backoff := minBackoff
	for ctx.Err() == nil {
		began := time.Now()
		err := i.listAndWatch(ctx, ready)
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(began) > maxBackoff {
			backoff = minBackoff
		}
		if err != nil && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			i.opts.Log.Warn("watch broke, listing again", "kind", i.kind.String(), "error", err, "in", backoff)
		}
		t := time.NewTimer(backoff)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
		}
		backoff = min(2*backoff, maxBackoff)
	}
	return nil
}

func (i *Informer[T]) listAndWatch(ctx context.Context, ready func()) error {
	list, err := i.client.List(ctx, i.kind, client.ListOptions{Namespace: i.opts.Namespace, Labels: i.opts.Labels, Fields: i.opts.Fields})
	if err != nil {
		return err
	}
	i.replace(list.Items)
	ready()
	rev := list.ResourceVersion
	for {
		w, err := i.client.Watch(ctx, i.kind, client.WatchOptions{Namespace: i.opts.Namespace, Labels: i.opts.Labels,
			Fields: i.opts.Fields, ResourceVersion: rev, Bookmarks: true})
		if err != nil {
			return err
		}
		got := false
		for e := range w.Events() {
			got = true
			rev = e.ResourceVersion
			if e.Type != client.Bookmark {
				i.apply(e.Object.(T), e.Type == client.Deleted)
			}
		}
		if err := w.Err(); err != nil {
			return err
		}
		if !got || ctx.Err() != nil { // an empty watch that ended: not in a tight loop
			return nil
		}
	}
}

// replace makes the view that of a list and tells the handlers the difference.
func (i *Informer[T]) replace(items []api.Object) {
	seen := make(map[string]bool, len(items))
	for _, obj := range items {
		seen[mapKey(obj.GetNamespace(), obj.GetName())] = true
		i.apply(obj.(T), false)
	}
	for _, obj := range i.List() {
		if !seen[mapKey(obj.GetNamespace(), obj.GetName())] {
			i.apply(obj, true)
		}
	}
}

func (i *Informer[T]) apply(obj T, deleted bool) {
	var none T
	key := mapKey(obj.GetNamespace(), obj.GetName())
	i.mu.Lock()
	old, had := i.objects[key]
	switch {
	case deleted:
		delete(i.objects, key)
	case had && old.GetResourceVersion() == obj.GetResourceVersion():
		i.mu.Unlock()
		return
	default:
		i.objects[key] = obj
	}
	i.mu.Unlock()
	for _, h := range i.handlers {
		switch {
		case deleted && had:
			h(obj, none)
		case deleted:
		case had && old.GetUID() != obj.GetUID(): // deleted and made anew while we did not look
			h(old, none)
			h(none, obj)
		case had:
			h(old, obj)
		default:
			h(none, obj)
		}
	}
}
