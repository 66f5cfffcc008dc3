// Package informer keeps a part's view of one kind: a list at a revision, then the watch that follows
// it, and a list again when the history is gone.
//
// It promises: Get and List answer from memory; every change of an object is seen once by each
// handler, in order, also those that happened while a broken watch was opened again (as the difference
// between the lists); after an error it goes on by itself, with back-off. It never dies silently: Run
// returns only when ctx ends. Get, List, the indexes and Revision always agree: who has seen Revision
// reach that of a write sees the write in all of them.
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
	indexes  []Handler[T]
	revision uint64
	handlers []Handler[T]
	listed   []func()
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

// Index adds a handler that is told of a change in the moment in which Get begins to show it, before
// any OnChange handler; before Run only. It must not call the informer.
func (i *Informer[T]) Index(h Handler[T]) { i.indexes = append(i.indexes, h) }

// OnList adds a function that is called after each list, when all of it is to be seen; before Run only.
// What was made and deleted again between a broken watch and the list is never seen otherwise.
func (i *Informer[T]) OnList(f func()) { i.listed = append(i.listed, f) }

// Revision is that of the store which the view has reached, 0 before the first list.
func (i *Informer[T]) Revision() uint64 {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return i.revision
}

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
	ready = sync.OnceFunc(ready)
	backoff := minBackoff
	for ctx.Err() == nil {
		watched, err := i.listAndWatch(ctx, ready)
		if ctx.Err() != nil {
			return nil
		}
		if watched { // the API is well enough
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

// listAndWatch returns when the watch cannot be followed any more; watched says that it brought something.
func (i *Informer[T]) listAndWatch(ctx context.Context, ready func()) (watched bool, err error) {
	list, err := i.client.List(ctx, i.kind, client.ListOptions{Namespace: i.opts.Namespace, Labels: i.opts.Labels, Fields: i.opts.Fields})
	if err != nil {
		return false, err
	}
	i.replace(list.Items, list.ResourceVersion)
	ready()
	rev := list.ResourceVersion
	for {
		w, err := i.client.Watch(ctx, i.kind, client.WatchOptions{Namespace: i.opts.Namespace, Labels: i.opts.Labels,
			Fields: i.opts.Fields, ResourceVersion: rev, Bookmarks: true})
		if err != nil {
			return watched, err
		}
		got := false
		for e := range w.Events() {
			got, watched = true, true
			rev = e.ResourceVersion
			i.apply(e)
		}
		if err := w.Err(); err != nil {
			return watched, err
		}
		if !got || ctx.Err() != nil { // an empty watch that ended: not in a tight loop
			return watched, nil
		}
	}
}

// change is what handlers are told.
type change[T api.Object] struct{ old, now T }

// replace makes the view that of a list and tells the handlers the difference.
func (i *Informer[T]) replace(items []api.Object, revision string) {
	i.tell(i.become(items, revision))
	for _, f := range i.listed {
		f()
	}
}

func (i *Informer[T]) become(items []api.Object, revision string) (changes []change[T]) {
	i.mu.Lock()
	defer i.mu.Unlock()
	seen := make(map[string]bool, len(items))
	for _, obj := range items {
		seen[mapKey(obj.GetNamespace(), obj.GetName())] = true
		changes = i.put(changes, obj.(T))
	}
	for key, obj := range i.objects {
		if !seen[key] {
			changes = i.drop(changes, obj)
		}
	}
	i.reached(revision)
	return changes
}

// apply follows an event of the watch.
func (i *Informer[T]) apply(e client.Event) { i.tell(i.follow(e)) }

func (i *Informer[T]) follow(e client.Event) (changes []change[T]) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch e.Type {
	case client.Bookmark:
	case client.Deleted:
		changes = i.drop(nil, e.Object.(T))
	default:
		changes = i.put(nil, e.Object.(T))
	}
	i.reached(e.ResourceVersion)
	return changes
}

// put stores an object; the lock is held.
func (i *Informer[T]) put(changes []change[T], obj T) []change[T] {
	var none T
	key := mapKey(obj.GetNamespace(), obj.GetName())
	old, had := i.objects[key]
	if had && old.GetResourceVersion() == obj.GetResourceVersion() {
		return changes
	}
	if had && old.GetUID() != obj.GetUID() { // deleted and made anew while we did not look
		changes, old = i.drop(changes, old), none
	}
	i.objects[key] = obj
	i.index(old, obj)
	return append(changes, change[T]{old, obj})
}

// drop forgets an object, whose last state may be newer than the one we had; the lock is held.
func (i *Informer[T]) drop(changes []change[T], last T) []change[T] {
	var none T
	key := mapKey(last.GetNamespace(), last.GetName())
	had, ok := i.objects[key]
	if !ok {
		return changes
	}
	delete(i.objects, key)
	i.index(had, none)
	return append(changes, change[T]{last, none})
}

func (i *Informer[T]) index(old, now T) {
	for _, h := range i.indexes {
		h(old, now)
	}
}

// reached notes how far the view is; the lock is held.
func (i *Informer[T]) reached(revision string) {
	i.revision = max(i.revision, api.Revision(revision))
}

func (i *Informer[T]) tell(changes []change[T]) {
	for _, c := range changes {
		for _, h := range i.handlers {
			h(c.old, c.now)
		}
	}
}
