package informer

import (
	"context"
	"maps"
	"slices"
	"sync"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/supervise"
)

// view is all objects of a kind and selection, and the members that hear of their changes.
type view struct {
	stop      context.CancelFunc
	done      chan struct{} // closed when the watch has ended
	followers int           // of Views, which guards it

	// turn is held while a change is applied and members are called, and while a member joins or leaves. So each
	// member is called with each change once and in order, and not any more when it has left.
	turn    sync.Mutex
	listed  bool
	failed  error
	members []*member
	waiting []*member // they join when the view shows what they have listed

	mu       sync.RWMutex // taken after turn
	objects  map[string]api.Object
	revision uint64
}

// member is an informer as its view sees it.
type member struct {
	seen   *listing           // what the view must show before the member joins; nil: anything
	shows  func(v *view)      // gives it the view that it reads from now on, with mu held
	index  func(c change)     // called for each change, with mu held
	notify func(all []change) // called for the same changes when mu is free again
	list   func()             // called after each list, also for the first objects
	joined chan struct{}      // closed when it has joined
	ended  chan error         // gets the error that ends it
	// failed says that a handler has panicked, broken that an index has. The other handlers are not called any more.
	failed, broken bool
}

// change is one object's change: old is nil for a new object, now is nil for a deleted one.
type change struct{ old, now api.Object }

// listing is what a member's own list has shown.
type listing struct {
	revision uint64
	newest   uint64 // the newest revision of an object
	keys     map[string]bool
}

// covers reports whether the view shows all that a listing has shown: each of its objects, and nothing that had been
// deleted before; turn is held. The view's own revision need not reach the listing's: that of a kind that nobody
// changes stays behind.
func (v *view) covers(l *listing) bool {
	if l == nil {
		return true
	}
	if v.revision < l.newest {
		return false
	}
	for key, obj := range v.objects {
		if !l.keys[key] && api.Revision(obj.GetResourceVersion()) <= l.revision {
			return false
		}
	}
	return true
}

// join lets a member follow the view, as soon as the view shows what the member has listed. The member is called with
// all objects first.
func (v *view) join(m *member) {
	v.turn.Lock()
	defer v.turn.Unlock()
	if v.failed != nil {
		m.ended <- v.failed
		return
	}
	v.waiting = append(v.waiting, m)
	v.admit()
}

// leave ends the calls to a member; none is in progress when it returns. The member goes on showing what it showed last,
// as its indexes do.
func (v *view) leave(m *member) {
	v.turn.Lock()
	defer v.turn.Unlock()
	if slices.Contains(v.members, m) {
		v.mu.Lock()
		v.freeze(m)
		v.mu.Unlock()
	}
	same := func(o *member) bool { return o == m }
	v.members, v.waiting = slices.DeleteFunc(v.members, same), slices.DeleteFunc(v.waiting, same)
}

// freeze gives a member a copy of the view as it is; both locks are held.
func (v *view) freeze(m *member) {
	if !m.broken {
		m.shows(&view{objects: maps.Clone(v.objects), revision: v.revision})
	}
}

// fail ends all members.
func (v *view) fail(err error) {
	v.turn.Lock()
	defer v.turn.Unlock()
	v.failed = err
	for _, m := range append(v.members, v.waiting...) {
		m.end(err)
	}
}

// admit lets those join who have waited long enough; turn is held.
func (v *view) admit() {
	if !v.listed || len(v.waiting) == 0 {
		return
	}
	var still []*member
	for _, m := range v.waiting {
		if !v.covers(m.seen) {
			still = append(still, m)
			continue
		}
		m.seen = nil
		if err := supervise.Safe(func() error { v.introduce(m); return nil }); err != nil {
			m.end(err)
			continue
		}
		v.members = append(v.members, m)
		close(m.joined)
	}
	v.waiting = still
}

// introduce calls a new member with all objects.
func (v *view) introduce(m *member) {
	m.notify(v.showTo(m))
	m.list()
}

func (v *view) showTo(m *member) []change {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := make([]change, 0, len(v.objects))
	for _, obj := range v.objects {
		c := change{now: obj}
		m.index(c)
		all = append(all, c)
	}
	m.shows(v)
	return all
}

// replace replaces the objects by a list and calls the members with the difference.
func (v *view) replace(items []api.Object, revision string) {
	v.turn.Lock()
	defer v.turn.Unlock()
	changes := v.become(items, revision)
	v.tell(func(m *member) {
		m.notify(changes)
		m.list()
	})
	v.listed = true
	v.admit()
}

func (v *view) become(items []api.Object, revision string) (changes []change) {
	v.mu.Lock()
	defer v.mu.Unlock()
	seen := make(map[string]bool, len(items))
	for _, obj := range items {
		seen[mapKey(obj.GetNamespace(), obj.GetName())] = true
		changes = v.put(changes, obj)
	}
	for key, obj := range v.objects {
		if !seen[key] {
			changes = v.drop(changes, obj)
		}
	}
	v.reached(revision)
	return changes
}

// apply applies an event of the watch and calls the members.
func (v *view) apply(e client.Event) {
	v.turn.Lock()
	defer v.turn.Unlock()
	if changes := v.follow(e); len(changes) > 0 {
		v.tell(func(m *member) { m.notify(changes) })
	}
	v.admit()
}

func (v *view) follow(e client.Event) (changes []change) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch e.Type {
	case client.Bookmark:
	case client.Deleted:
		changes = v.drop(nil, e.Object)
	default:
		changes = v.put(nil, e.Object)
	}
	v.reached(e.ResourceVersion)
	return changes
}

// put stores an object; both locks are held.
func (v *view) put(changes []change, obj api.Object) []change {
	key := mapKey(obj.GetNamespace(), obj.GetName())
	old := v.objects[key]
	if old != nil && old.GetResourceVersion() == obj.GetResourceVersion() {
		return changes
	}
	if old != nil && old.GetUID() != obj.GetUID() { // deleted and created again while there was no watch
		changes, old = v.drop(changes, old), nil
	}
	v.objects[key] = obj
	v.index(change{old, obj})
	return append(changes, change{old, obj})
}

// drop removes an object, whose last state may be newer than the view's; both locks are held.
func (v *view) drop(changes []change, last api.Object) []change {
	key := mapKey(last.GetNamespace(), last.GetName())
	had := v.objects[key]
	if had == nil {
		return changes
	}
	delete(v.objects, key)
	v.index(change{old: had})
	return append(changes, change{old: last})
}

// index calls the members' indexes; both locks are held. An index that panics gets no more changes, and its member shows
// what it showed before.
func (v *view) index(c change) {
	for _, m := range v.members {
		if m.broken {
			continue
		}
		if err := supervise.Safe(func() error { m.index(c); return nil }); err != nil {
			v.freeze(m)
			m.broken = true
			m.end(err)
		}
	}
}

// tell calls the members' handlers; turn is held. After a panic the member's handlers are not called any more. Its
// indexes are, because what it shows must agree with them until it leaves.
func (v *view) tell(call func(m *member)) {
	for _, m := range v.members {
		if m.failed {
			continue
		}
		if err := supervise.Safe(func() error { call(m); return nil }); err != nil {
			m.end(err)
		}
	}
}

// end ends a member with an error.
func (m *member) end(err error) {
	if !m.failed {
		m.failed = true
		m.ended <- err
	}
}

// reached records the view's revision; both locks are held.
func (v *view) reached(revision string) {
	v.revision = max(v.revision, api.Revision(revision))
}

func mapKey(namespace, name string) string { return namespace + "/" + name }
