// Package expect remembers what a controller has written and its view does not show yet, so that a slow
// watch or a lost answer never makes it do the same twice.
//
// It promises: Settled says yes exactly when the informer shows every write that was noted for an
// owner; when it has said no, the owner is woken as soon as that may have changed. Nothing is counted
// and nothing times out: a write is known by its revision, a deletion by the object's UID, and both are
// looked up in the view. A write that failed in such a way that it may have taken effect all the same is
// looked up in the API before anything else is done.
//
// Controllers use it: Settled before they read what belongs to an owner, Wrote, Deleted or Failed after
// their writes, and their handlers wake the owner of every object that changes. One owner must not be
// worked on twice at once (the loop sees to that). It holds memory only; after a kill -9 the first list
// is complete, and nothing is expected.
package expect

import (
	"context"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/controller/loop"
	"minik8s/internal/informer"
)

// Tracker holds the expectations of one controller about one kind of dependents. Make it with New.
type Tracker[T api.Object] struct {
	client client.Interface
	view   *informer.Informer[T]
	mu     sync.Mutex
	of     map[loop.Key]*owed[T]
}

// owed is what the view has yet to show of one owner.
type owed[T api.Object] struct {
	revision uint64
	deleted  map[types.UID]T
	unsure   []client.Key // what came of these has to be asked
}

// New makes a tracker that looks things up in view, and in c where it must; wake is called with an owner
// that waits after each list, which may have left out the event that it waits for.
func New[T api.Object](c client.Interface, view *informer.Informer[T], wake func(owner loop.Key)) *Tracker[T] {
	t := &Tracker[T]{client: c, view: view, of: map[loop.Key]*owed[T]{}}
	view.OnList(func() {
		for _, owner := range t.owners() {
			wake(owner)
		}
	})
	return t
}

func (t *Tracker[T]) owners() []loop.Key {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]loop.Key, 0, len(t.of))
	for owner := range t.of {
		out = append(out, owner)
	}
	return out
}

func (t *Tracker[T]) get(owner loop.Key) *owed[T] {
	o := t.of[owner]
	if o == nil {
		o = &owed[T]{deleted: map[types.UID]T{}}
		t.of[owner] = o
	}
	return o
}

// Wrote notes a dependent as it was stored. It is safe to call side by side.
func (t *Tracker[T]) Wrote(owner loop.Key, stored T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.get(owner)
	o.revision = max(o.revision, api.Revision(stored.GetResourceVersion()))
}

// Deleted notes that a dependent is being deleted, or has gone. It is safe to call side by side.
func (t *Tracker[T]) Deleted(owner loop.Key, obj T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.get(owner).deleted[obj.GetUID()] = obj
}

// Failed notes that a write of a dependent failed. If it surely had no effect that is all; else Settled
// will find out. The object's name must be chosen by the caller. It is safe to call side by side.
func (t *Tracker[T]) Failed(owner loop.Key, obj T, err error) {
	if surely(err) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.get(owner)
	o.unsure = append(o.unsure, client.KeyOf(obj))
}

// surely says that a call which failed had no effect: the API has looked at it and said no. A conflict,
// or that the name is taken, may be the answer to the same call made twice on its way.
func surely(err error) bool {
	status, told := err.(apierrors.APIStatus)
	return told && status.Status().Code < http.StatusInternalServerError &&
		!apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err)
}

// Settled says that the view shows everything the controller has done for an owner. The error is that
// of asking the API what came of a write.
func (t *Tracker[T]) Settled(ctx context.Context, owner loop.Key) (bool, error) {
	if err := t.ask(ctx, owner); err != nil {
		return false, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.of[owner]
	if o == nil {
		return true, nil
	}
	for uid, obj := range o.deleted {
		if t.going(obj) {
			delete(o.deleted, uid)
		}
	}
	if len(o.deleted) > 0 || t.view.Revision() < o.revision {
		return false, nil
	}
	delete(t.of, owner)
	return true, nil
}

// ask finds out what came of the writes that failed.
func (t *Tracker[T]) ask(ctx context.Context, owner loop.Key) error {
	t.mu.Lock()
	var unsure []client.Key
	if o := t.of[owner]; o != nil {
		unsure = o.unsure
	}
	t.mu.Unlock()
	for i, key := range unsure {
		there, err := client.Get[T](ctx, t.client, key)
		shown, ok := t.view.Get(key.Namespace, key.Name)
		switch {
		case err == nil && ours(owner, there):
			t.Wrote(owner, there)
		case err == nil: // another's, which had the name before: no event of it would wake us
		case !apierrors.IsNotFound(err):
			t.keep(owner, unsure[i:])
			return err
		case ok:
			t.Deleted(owner, shown)
		}
	}
	t.keep(owner, nil)
	return nil
}

// ours says that an object is not another owner's. It may be the owner itself, whose status was written.
func ours(owner loop.Key, obj api.Object) bool {
	ref := metav1.GetControllerOfNoCopy(obj)
	return ref == nil || ref.Name == owner.Name || obj.GetName() == owner.Name
}

func (t *Tracker[T]) keep(owner loop.Key, unsure []client.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o := t.of[owner]; o != nil {
		o.unsure = unsure
	}
}

// going says that the view shows an object as being deleted, or shows it no more.
func (t *Tracker[T]) going(obj T) bool {
	now, ok := t.view.Get(obj.GetNamespace(), obj.GetName())
	return !ok || now.GetUID() != obj.GetUID() || now.GetDeletionTimestamp() != nil
}

// Forget drops what was expected for an owner that is no more.
func (t *Tracker[T]) Forget(owner loop.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, owner)
}
