package api

import (
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Table is the kinds that a cluster serves. It begins with those that are compiled in; others may come while it
// runs, and whoever follows the kinds (discovery, the garbage collector, the emptying of namespaces) asks the table
// each time, or waits on Changed. It is safe for use by many goroutines.
type Table struct {
	mu      sync.RWMutex
	served  []*Kind // replaced as a whole, in the order of discovery
	stored  []*Kind
	changed chan struct{}
}

// NewTable is a table of these kinds.
func NewTable(kinds ...*Kind) *Table {
	t := &Table{changed: make(chan struct{}), served: kinds}
	t.stored = slices.DeleteFunc(slices.Clone(kinds), func(k *Kind) bool { return !k.Stored() })
	return t
}

// Served is every kind that a path of the API names. Callers must not change the slice.
func (t *Table) Served() []*Kind {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.served
}

// Stored is the kinds of which there are objects in the store. Callers must not change the slice.
func (t *Table) Stored() []*Kind {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.stored
}

// GroupVersions are the groups of the kinds that are served, in the order of the table, each with its versions.
func (t *Table) GroupVersions() (groups []string, versions map[string][]string) {
	versions = map[string][]string{}
	for _, k := range t.Served() {
		if !slices.Contains(groups, k.Group) {
			groups = append(groups, k.Group)
		}
		if !slices.Contains(versions[k.Group], k.Version) {
			versions[k.Group] = append(versions[k.Group], k.Version)
		}
	}
	return groups, versions
}

// Add has a kind served from now on, if it is Free. Kinds are added by one goroutine at a time.
func (t *Table) Add(k *Kind) error {
	if err := t.Free(k); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.served = append(slices.Clone(t.served), k)
	if k.Stored() {
		t.stored = append(slices.Clone(t.stored), k)
	}
	close(t.changed)
	t.changed = make(chan struct{})
	return nil
}

// Free is an error if another kind has the path or the name of this one.
func (t *Table) Free(k *Kind) error {
	for _, other := range t.Served() {
		if other.GVR() == k.GVR() || other.GVK() == k.GVK() {
			return fmt.Errorf("%s of %s is served already", k.Kind, k.GVR().GroupVersion())
		}
	}
	return nil
}

// Changed is closed when a kind comes next. A follower takes it before it asks for the kinds, so that it misses
// none.
func (t *Table) Changed() <-chan struct{} {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.changed
}

// ByResource finds the kind at a path of the API; nil if there is none.
func (t *Table) ByResource(gvr schema.GroupVersionResource) *Kind {
	for _, k := range t.Served() {
		if k.Plural == gvr.Resource && k.Group == gvr.Group && k.Version == gvr.Version {
			return k
		}
	}
	return nil
}

// ByGVK finds the stored kind that a manifest names; nil if there is none.
func (t *Table) ByGVK(gvk schema.GroupVersionKind) *Kind { return byGVK(t.Stored(), gvk) }

func byGVK(kinds []*Kind, gvk schema.GroupVersionKind) *Kind {
	for _, k := range kinds {
		if k.Kind == gvk.Kind && k.Group == gvk.Group && k.Version == gvk.Version {
			return k
		}
	}
	return nil
}
