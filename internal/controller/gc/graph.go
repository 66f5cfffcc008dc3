package gc

import (
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// item is what the collector knows of an object.
type item struct {
	key    client.Key
	uid    types.UID
	owners []metav1.OwnerReference // shared with the object
	// deleting: the deletion has begun. foreground and orphan: it waits for the collector, by that finalizer.
	deleting, foreground, orphan bool
}

func itemOf(kind *api.Kind, obj api.Object) *item {
	return &item{
		key: client.Key{Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}, uid: obj.GetUID(),
		owners: obj.GetOwnerReferences(), deleting: obj.GetDeletionTimestamp() != nil,
		foreground: slices.Contains(obj.GetFinalizers(), metav1.FinalizerDeleteDependents),
		orphan:     slices.Contains(obj.GetFinalizers(), metav1.FinalizerOrphanDependents),
	}
}

// waiting reports whether the object is being deleted in the foreground.
func (i *item) waiting() bool { return i.deleting && i.foreground }

// graph records the owners of objects, as far as the watches have shown them.
type graph struct {
	mu         sync.RWMutex
	items      map[types.UID]*item
	dependents map[types.UID]map[types.UID]struct{} // by the owner
}

func newGraph() *graph {
	return &graph{items: map[types.UID]*item{}, dependents: map[types.UID]map[types.UID]struct{}{}}
}

func (g *graph) put(i *item) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unlink(g.items[i.uid])
	g.items[i.uid] = i
	for _, o := range i.owners {
		if g.dependents[o.UID] == nil {
			g.dependents[o.UID] = map[types.UID]struct{}{}
		}
		g.dependents[o.UID][i.uid] = struct{}{}
	}
}

func (g *graph) remove(uid types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unlink(g.items[uid])
	delete(g.items, uid)
}

func (g *graph) unlink(i *item) {
	if i == nil {
		return
	}
	for _, o := range i.owners {
		if delete(g.dependents[o.UID], i.uid); len(g.dependents[o.UID]) == 0 {
			delete(g.dependents, o.UID)
		}
	}
}

func (g *graph) get(uid types.UID) *item {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.items[uid]
}

// owned are the objects that have an owner.
func (g *graph) owned() []types.UID {
	g.mu.RLock()
	defer g.mu.RUnlock()
	var out []types.UID
	for uid, i := range g.items {
		if len(i.owners) > 0 {
			out = append(out, uid)
		}
	}
	return out
}

// dependentsOf are the dependents of an owner.
func (g *graph) dependentsOf(uid types.UID) []*item {
	g.mu.RLock()
	defer g.mu.RUnlock()
	out := make([]*item, 0, len(g.dependents[uid]))
	for dep := range g.dependents[uid] {
		if i := g.items[dep]; i != nil {
			out = append(out, i)
		}
	}
	return out
}
