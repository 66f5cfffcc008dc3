package owner

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/informer"
)

// Index finds the dependents of an owner without looking at every object.
type Index[T api.Object] struct {
	mu      sync.RWMutex
	owned   map[types.UID]map[string]T // by the controller's UID, then name
	orphans map[string]map[string]T    // by namespace, then name
}

// NewIndex makes an index that follows an informer and always agrees with it.
func NewIndex[T api.Object](inf *informer.Informer[T]) *Index[T] {
	x := &Index[T]{owned: map[types.UID]map[string]T{}, orphans: map[string]map[string]T{}}
	inf.Index(x.change)
	return x
}

func (x *Index[T]) change(old, now T) {
	x.mu.Lock()
	defer x.mu.Unlock()
	var none T
	if any(old) != any(none) {
		x.drop(old)
	}
	if any(now) != any(none) {
		x.put(now)
	}
}

func (x *Index[T]) put(obj T) {
	if ref := metav1.GetControllerOfNoCopy(obj); ref != nil {
		add(x.owned, ref.UID, obj)
		return
	}
	add(x.orphans, obj.GetNamespace(), obj)
}

func (x *Index[T]) drop(obj T) {
	if ref := metav1.GetControllerOfNoCopy(obj); ref != nil {
		remove(x.owned, ref.UID, obj)
		return
	}
	remove(x.orphans, obj.GetNamespace(), obj)
}

// Owned are the objects that name the controller with this UID.
func (x *Index[T]) Owned(uid types.UID) []T {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return values(nil, x.owned[uid])
}

// Candidates are the objects that may be the owner's: those that name it as their controller, and those of its
// namespace that have none.
func (x *Index[T]) Candidates(owner api.Object) []T {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return values(values(nil, x.owned[owner.GetUID()]), x.orphans[owner.GetNamespace()])
}

func add[K comparable, T api.Object](m map[K]map[string]T, key K, obj T) {
	inner := m[key]
	if inner == nil {
		inner = map[string]T{}
		m[key] = inner
	}
	inner[obj.GetName()] = obj
}

func remove[K comparable, T api.Object](m map[K]map[string]T, key K, obj T) {
	if inner := m[key]; inner != nil {
		if delete(inner, obj.GetName()); len(inner) == 0 {
			delete(m, key)
		}
	}
}

func values[T api.Object](out []T, m map[string]T) []T {
	for _, obj := range m {
		out = append(out, obj)
	}
	return out
}
