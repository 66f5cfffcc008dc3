package registry

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/api"
	"minik8s/internal/registry/storage"
)

// The types of storage for reading, under the names that the registry's callers use.
type (
	// Entry is one version of one object.
	Entry = storage.Entry
	// ListOptions selects objects. Namespace and Fields are the request's, if there is a request.
	ListOptions = storage.ListOptions
	// List is a page of entries at one revision.
	List = storage.List
	// WatchOptions says what to watch and from which revision.
	WatchOptions = storage.WatchOptions
	// Watch is an open watch.
	Watch = storage.Watch
	// Event is one change as a watcher sees it.
	Event = storage.Event
)

// Get returns an object in its newest version. The error is 404 if it does not exist, 403 if the user may not read
// it.
func (r *Registry) Get(ctx context.Context, q *Request) (*Entry, error) {
	if err := r.authorizeAs(ctx, "get", q); err != nil {
		return nil, err
	}
	return r.read(ctx, q.Kind, q.Namespace, q.Name)
}

// Parent returns the parent object of a request for a subresource that is not an object: the pod of a log, the node
// of its images. The request's name may contain more than the parent's name ("https:web:443"); authorisation uses the
// whole name. The errors are those of Get.
func (r *Registry) Parent(ctx context.Context, q *Request, name string) (*Entry, error) {
	if err := r.Authorize(ctx, q); err != nil {
		return nil, err
	}
	return r.read(ctx, q.Kind, q.Namespace, name)
}

// List returns every object that opts selects, at one revision that includes every write acknowledged before the
// call. The errors are 400 for options that are not valid, 403, and 410 if the history for the requested revision is
// gone.
func (r *Registry) List(ctx context.Context, q *Request, opts ListOptions) (*List, error) {
	if err := r.authorizeAs(ctx, "list", q); err != nil {
		return nil, err
	}
	opts.Namespace, opts.Fields = q.Namespace, q.Fields
	return r.list(ctx, q.Kind, opts)
}

func (r *Registry) list(ctx context.Context, kind *api.Kind, opts ListOptions) (*List, error) {
	sel, err := r.selector(kind, opts.Namespace, opts.Labels, opts.Fields)
	if err != nil {
		return nil, err
	}
	return r.cache.List(ctx, kind, opts, sel)
}

// Watch opens a watch. The errors are 400 for a selector that is not valid, 403, 410 if the history is gone, and 504
// if the revision lies in the future.
func (r *Registry) Watch(ctx context.Context, q *Request, opts WatchOptions) (*Watch, error) {
	if err := r.authorizeAs(ctx, "watch", q); err != nil {
		return nil, err
	}
	opts.Namespace, opts.Fields = q.Namespace, q.Fields
	if q.View != nil {
		opts.Same = q.View.View.Same
	}
	sel, err := r.selector(q.Kind, opts.Namespace, opts.Labels, opts.Fields)
	if err != nil {
		return nil, err
	}
	return r.cache.Watch(ctx, q.Kind, opts, sel)
}

// selector builds the selector of a list or watch. A field that the kind cannot be selected by is refused (400).
func (r *Registry) selector(kind *api.Kind, namespace string, l labels.Selector, f fields.Selector) (*storage.Selector, error) {
	strategy := r.Strategy(kind)
	s := &storage.Selector{Namespace: namespace, Labels: l, Fields: f, Gettable: strategy.Fields}
	if l != nil && l.Empty() {
		s.Labels = nil
	}
	if f != nil && f.Empty() {
		s.Fields = nil
	}
	if s.Fields == nil {
		return s, nil
	}
	known := append([]string{"metadata.name", "metadata.namespace"}, slices.Sorted(maps.Keys(strategy.Fields))...)
	for _, req := range s.Fields.Requirements() {
		if !slices.Contains(known, req.Field) {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("fieldSelector: %q is not a field that %s can be selected by; there are %s",
				req.Field, kind, strings.Join(known, ", ")))
		}
	}
	return s, nil
}

// cached reads from the cache, for authorisation and admission.
type cached struct{ *storage.Cache }

// Known implements authorization.Reader.
func (c cached) Known(ctx context.Context, kind *api.Kind, namespace, name string) (api.Object, error) {
	e, err := c.known(ctx, kind, namespace, name)
	if e == nil {
		return nil, err
	}
	return e.Object(), nil
}

// known returns an entry, also one that was created a moment ago; nil if there is none.
func (c cached) known(ctx context.Context, kind *api.Kind, namespace, name string) (*Entry, error) {
	key := storage.KeyOf(kind, namespace, name)
	if e := c.Of(kind).Get(key); e != nil {
		return e, nil
	}
	if err := c.Cache.Current(ctx); err != nil { // it may have been created a moment ago
		return nil, storage.Error(kind, name, err)
	}
	return c.Of(kind).Get(key), nil
}

// Current implements authorization.Reader.
func (c cached) Current(ctx context.Context) error {
	return storage.Error(api.Nodes, "", c.Cache.Current(ctx))
}

// Annotation implements authorization.Reader.
func (c cached) Annotation(kind *api.Kind, name, key string) string {
	if e := c.Of(kind).Get(storage.KeyOf(kind, "", name)); e != nil {
		return e.Object().GetAnnotations()[key]
	}
	return ""
}

// InNamespace implements authorization.Reader.
func (c cached) InNamespace(kind *api.Kind, namespace string) iter.Seq[api.Object] {
	return func(yield func(api.Object) bool) {
		entries, _ := c.Of(kind).Snapshot(namespace, "")
		for _, e := range entries {
			if !yield(e.Object()) {
				return
			}
		}
	}
}
