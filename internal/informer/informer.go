package informer

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

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
	// Views are shared with other informers of the process. Nil: the informer has a watch and a map of its own.
	Views *Views
}

// Handler is called with each change: old is the zero T for a new object, now is the zero T for a deleted one.
type Handler[T api.Object] func(old, now T)

// Informer is a part's view of one kind.
type Informer[T api.Object] struct {
	client client.Interface
	kind   *api.Kind
	opts   Options

	view     atomic.Pointer[view] // nil until it has joined one
	indexes  []Handler[T]
	handlers []Handler[T]
	listed   []func()
}

// New makes an informer; Run fills it.
func New[T api.Object](c client.Interface, kind *api.Kind, opts Options) *Informer[T] {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Views == nil {
		opts.Views = newOwn(c, opts.Log)
	}
	return &Informer[T]{client: c, kind: kind, opts: opts}
}

// OnChange adds a handler. Call it before Run.
func (i *Informer[T]) OnChange(h Handler[T]) { i.handlers = append(i.handlers, h) }

// Index adds a handler that is called at the moment when Get begins to show a change, before any OnChange handler.
// Call it before Run. The handler must not call the informer.
func (i *Informer[T]) Index(h Handler[T]) { i.indexes = append(i.indexes, h) }

// OnList adds a function that is called after each list, when Get and List show all of it. Call it before Run. It is
// the only sign of objects that were created and deleted again while there was no watch.
func (i *Informer[T]) OnList(f func()) { i.listed = append(i.listed, f) }

// Signal returns a channel that holds a value when something has changed that counts, and after each list: for those who
// then look at List. Call it before Run.
func (i *Informer[T]) Signal(counts func(old, now T) bool) <-chan struct{} {
	changed := make(chan struct{}, 1)
	signal := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	i.OnChange(func(old, now T) {
		if counts(old, now) {
			signal()
		}
	})
	i.OnList(signal)
	return changed
}

// Revision is the store's revision that the view has reached; 0 before the first list.
func (i *Informer[T]) Revision() uint64 {
	v := i.view.Load()
	if v == nil {
		return 0
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.revision
}

// Get returns one object; false if it does not exist. The object is shared and must not be changed.
func (i *Informer[T]) Get(namespace, name string) (T, bool) {
	var none T
	v := i.view.Load()
	if v == nil {
		return none, false
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	obj, ok := v.objects[mapKey(namespace, name)]
	if !ok {
		return none, false
	}
	return obj.(T), true
}

// List returns every object, in no order. They are shared and must not be changed.
func (i *Informer[T]) List() []T {
	v := i.view.Load()
	if v == nil {
		return nil
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	out := make([]T, 0, len(v.objects))
	for _, obj := range v.objects {
		out = append(out, obj.(T))
	}
	return out
}

// Len is how many objects there are.
func (i *Informer[T]) Len() int {
	v := i.view.Load()
	if v == nil {
		return 0
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	return len(v.objects)
}

// Run follows the kind until ctx ends; ready is called when Get and List show all objects that existed at the start.
// The error is a handler's panic. Run may be called once.
func (i *Informer[T]) Run(ctx context.Context, ready func()) error {
	seen, ok := i.look(ctx)
	if !ok {
		return nil
	}
	v := i.opts.Views.enter(i.kind, i.opts)
	defer i.opts.Views.leave(i.kind, i.opts, v)
	m := &member{seen: seen, joined: make(chan struct{}), ended: make(chan error, 1),
		index: i.index, notify: i.notify, list: i.list, shows: i.view.Store}
	v.join(m)
	defer v.leave(m)
	joined := m.joined
	for {
		select {
		case <-joined:
			joined = nil
			ready()
		case err := <-m.ended:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

const (
	minPause = 50 * time.Millisecond
	maxPause = 5 * time.Second
)

// look lists the objects that exist now; false if ctx ended. It reads with the part's own client, so that a part sees
// only what it may list. A view of its own is read with that client anyway.
func (i *Informer[T]) look(ctx context.Context) (seen *listing, ok bool) {
	if i.opts.Views.own {
		return nil, true
	}
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		l, err := i.client.List(ctx, i.kind, client.ListOptions{Namespace: i.opts.Namespace, Labels: i.opts.Labels, Fields: i.opts.Fields})
		if err == nil {
			return listingOf(l), true
		}
		if ctx.Err() != nil {
			return nil, false
		}
		level := slog.LevelWarn
		if pause < time.Second { // an API that is just starting
			level = slog.LevelDebug
		}
		i.opts.Log.Log(ctx, level, "cannot list, trying again", "kind", i.kind.String(), "error", err, "in", pause)
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, false
		}
	}
}

func listingOf(l *client.List) *listing {
	seen := &listing{revision: api.Revision(l.ResourceVersion), keys: make(map[string]bool, len(l.Items))}
	for _, obj := range l.Items {
		seen.newest = max(seen.newest, api.Revision(obj.GetResourceVersion()))
		seen.keys[mapKey(obj.GetNamespace(), obj.GetName())] = true
	}
	return seen
}

// typed are the old and the new object of a change.
func typed[T api.Object](c change) (old, now T) {
	if c.old != nil {
		old = c.old.(T)
	}
	if c.now != nil {
		now = c.now.(T)
	}
	return old, now
}

func (i *Informer[T]) index(c change) {
	for _, h := range i.indexes {
		h(typed[T](c))
	}
}

func (i *Informer[T]) notify(changes []change) {
	for _, c := range changes {
		for _, h := range i.handlers {
			h(typed[T](c))
		}
	}
}

func (i *Informer[T]) list() {
	for _, f := range i.listed {
		f()
	}
}
