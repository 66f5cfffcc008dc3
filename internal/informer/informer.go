package informer

import (
	"context"
	"log/slog"
	"sync"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/informer/reflector"
)

// Options selects what an informer sees.
type Options struct {
	Namespace string
	Labels    labels.Selector
	Fields    fields.Selector
	Log       *slog.Logger
}

// Handler is called with each change: old is the zero T for a new object, now is the zero T for a deleted one.
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

// OnChange adds a handler. Call it before Run.
func (i *Informer[T]) OnChange(h Handler[T]) { i.handlers = append(i.handlers, h) }

// Index adds a handler that is called at the moment when Get begins to show a change, before any OnChange handler.
// Call it before Run. The handler must not call the informer.
func (i *Informer[T]) Index(h Handler[T]) { i.indexes = append(i.indexes, h) }

// OnList adds a function that is called after each list, when Get and List show all of it. Call it before Run. It is
// the only sign of objects that were created and deleted again while there was no watch.
func (i *Informer[T]) OnList(f func()) { i.listed = append(i.listed, f) }

// Revision is the store's revision that the view has reached; 0 before the first list.
func (i *Informer[T]) Revision() uint64 {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return i.revision
}

// Get returns one object; false if it does not exist. The object is shared and must not be changed.
func (i *Informer[T]) Get(namespace, name string) (T, bool) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	obj, ok := i.objects[mapKey(namespace, name)]
	return obj, ok
}

// List returns every object, in no order. They are shared and must not be changed.
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

// Run follows the kind until ctx ends; ready is called when Get and List show all objects that existed at the start.
func (i *Informer[T]) Run(ctx context.Context, ready func()) error {
	ready = sync.OnceFunc(ready)
	r := reflector.Reflector{Client: i.client, Kind: i.kind, Namespace: i.opts.Namespace, Labels: i.opts.Labels, Fields: i.opts.Fields,
		Log: i.opts.Log, Apply: i.apply,
		Replace: func(items []api.Object, revision string) {
			i.replace(items, revision)
			ready()
		}}
	r.Run(ctx)
	return nil
}

// change is what handlers are called with.
type change[T api.Object] struct{ old, now T }

// replace replaces the view by a list and calls the handlers with the difference.
func (i *Informer[T]) replace(items []api.Object, revision string) {
	i.notify(i.become(items, revision))
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

// apply applies an event of the watch and calls the handlers.
func (i *Informer[T]) apply(e client.Event) { i.notify(i.follow(e)) }

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
	if had && old.GetUID() != obj.GetUID() { // deleted and created again while there was no watch
		changes, old = i.drop(changes, old), none
	}
	i.objects[key] = obj
	i.index(old, obj)
	return append(changes, change[T]{old, obj})
}

// drop removes an object, whose last state may be newer than the view's; the lock is held.
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

// reached records the view's revision; the lock is held.
func (i *Informer[T]) reached(revision string) {
	i.revision = max(i.revision, api.Revision(revision))
}

func (i *Informer[T]) notify(changes []change[T]) {
	for _, c := range changes {
		for _, h := range i.handlers {
			h(c.old, c.now)
		}
	}
}
