package api

import (
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Table holds the kinds that a cluster serves: those compiled in, and others that may be added while it runs. Code that
// follows the kinds (discovery, the garbage collector, the emptying of namespaces) asks the table each time, or waits
// on Changed. It is safe for concurrent use.
type Table struct {
	mu      sync.RWMutex
	served  []*Kind // replaced as a whole; in the order of discovery
	stored  []*Kind
	has     map[schema.GroupVersion]bool
	changed chan struct{}
}

// NewTable returns a table of these kinds.
func NewTable(kinds ...*Kind) *Table {
	t := &Table{changed: make(chan struct{}), served: kinds, has: map[schema.GroupVersion]bool{}}
	for _, k := range kinds {
		t.has[k.GVR().GroupVersion()] = true
	}
	t.stored = slices.DeleteFunc(slices.Clone(kinds), func(k *Kind) bool { return !k.Stored() })
	return t
}

// Served returns every kind that has a path in the API. Callers must not change the slice.
func (t *Table) Served() []*Kind {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.served
}

// Stored returns the kinds whose objects are stored. Callers must not change the slice.
func (t *Table) Stored() []*Kind {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.stored
}

// Has reports whether a served kind is of this group and version.
func (t *Table) Has(gv schema.GroupVersion) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.has[gv]
}

// GroupVersions returns the groups of the served kinds, in the order of the table, and the versions of each.
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

// Add starts serving a kind. It fails like Free. Only one goroutine at a time may add kinds.
func (t *Table) Add(k *Kind) error {
	if err := t.Free(k); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.served = append(slices.Clone(t.served), k)
	t.has[k.GVR().GroupVersion()] = true
	if k.Stored() {
		t.stored = append(slices.Clone(t.stored), k)
	}
	close(t.changed)
	t.changed = make(chan struct{})
	return nil
}

// Free returns an error if another kind already has the path or the name of k.
func (t *Table) Free(k *Kind) error {
	for _, other := range t.Served() {
		if other.GVR() == k.GVR() || other.GVK() == k.GVK() {
			return fmt.Errorf("%s of %s is served already", k.Kind, k.GVR().GroupVersion())
		}
	}
	return nil
}

// Changed returns a channel that is closed when the next kind is added. Take it before asking for the kinds, so that
// none is missed.
func (t *Table) Changed() <-chan struct{} {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.changed
}

// ByResource returns the kind at a path of the API; nil if there is none.
func (t *Table) ByResource(gvr schema.GroupVersionResource) *Kind {
	for _, k := range t.Served() {
		if k.Plural == gvr.Resource && k.Group == gvr.Group && k.Version == gvr.Version {
			return k
		}
	}
	return nil
}

// ByGVK returns the stored kind that a manifest names; nil if there is none.
func (t *Table) ByGVK(gvk schema.GroupVersionKind) *Kind { return byGVK(t.Stored(), gvk) }

func byGVK(kinds []*Kind, gvk schema.GroupVersionKind) *Kind {
	for _, k := range kinds {
		if k.Kind == gvk.Kind && k.Group == gvk.Group && k.Version == gvk.Version {
			return k
		}
	}
	return nil
}
