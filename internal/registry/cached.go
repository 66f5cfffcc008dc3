package registry

import (
	"minik8s/internal/api"
	"minik8s/internal/registry/storage"
)

// Cached returns an object from the cache, for the server's own use; nil if it is not there. Unlike Get it asks nobody
// and never waits, so a write that another master has just acknowledged may not be seen yet.
func (r *Registry) Cached(kind *api.Kind, namespace, name string) api.Object {
	if e := r.cache.Of(kind).Get(storage.KeyOf(kind, namespace, name)); e != nil {
		return e.Object()
	}
	return nil
}

// AllCached returns all objects of a kind as Cached does, in the order of namespace and name.
func (r *Registry) AllCached(kind *api.Kind) []api.Object {
	entries, _ := r.cache.Of(kind).Snapshot("", "")
	out := make([]api.Object, 0, len(entries))
	for _, e := range entries {
		out = append(out, e.Object())
	}
	return out
}
