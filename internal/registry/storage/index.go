package storage

import "minik8s/internal/api"

// Index has the cache know which object holds a name: an address, a port. holds returns the names of what an object has to
// itself; it is called for every version of every object, so only kinds of which there are few should have one. Call it
// before the cache runs.
func (kc *Objects) Index(holds func(obj api.Object) []string) { kc.holds = holds }

// Holder returns the object that holds a name; nil if it is free. Of several it is the one that was written last.
func (kc *Objects) Holder(name string) *Entry {
	kc.mu.RLock()
	defer kc.mu.RUnlock()
	return kc.holders[name]
}

// indexed follows a change of an object. The caller holds mu.
func (kc *Objects) indexed(prev, next *Entry) {
	if kc.holds == nil {
		return
	}
	if prev != nil {
		for _, name := range kc.holds(prev.Object()) {
			if kc.holders[name] == prev {
				delete(kc.holders, name)
			}
		}
	}
	if next != nil {
		for _, name := range kc.holds(next.Object()) {
			kc.holders[name] = next
		}
	}
}

// reindex begins anew with what is in the tree. The caller holds mu.
func (kc *Objects) reindex() {
	if kc.holds == nil {
		return
	}
	kc.holders = map[string]*Entry{}
	kc.tree.Ascend(func(e *Entry) bool {
		kc.indexed(nil, e)
		return true
	})
}
