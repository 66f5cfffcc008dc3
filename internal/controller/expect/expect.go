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
	of     map[loop.Key]*pending[T]
}

// pending are the writes of one owner that the view does not show yet.
type pending[T api.Object] struct {
	revision uint64
	deleted  map[types.UID]T
	unsure   []client.Key // writes whose outcome has to be read from the API
}

// New makes a tracker that looks writes up in view, and in c where their outcome is unknown. After each list wake is
// called with every owner that waits, because a list may skip the event that the owner waits for.
func New[T api.Object](c client.Interface, view *informer.Informer[T], wake func(owner loop.Key)) *Tracker[T] {
	t := &Tracker[T]{client: c, view: view, of: map[loop.Key]*pending[T]{}}
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

func (t *Tracker[T]) get(owner loop.Key) *pending[T] {
	o := t.of[owner]
	if o == nil {
		o = &pending[T]{deleted: map[types.UID]T{}}
		t.of[owner] = o
	}
	return o
}

// Wrote records a dependent as it was stored. It is safe for concurrent use.
func (t *Tracker[T]) Wrote(owner loop.Key, stored T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.get(owner)
	o.revision = max(o.revision, api.Revision(stored.GetResourceVersion()))
}

// Deleted records that a dependent is being deleted, or is deleted. It is safe for concurrent use.
func (t *Tracker[T]) Deleted(owner loop.Key, obj T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.get(owner).deleted[obj.GetUID()] = obj
}

// Failed records that a write of a dependent failed with err. If the write may have had an effect all the same,
// Settled finds out by the object's name, which the caller must have chosen. It is safe for concurrent use.
func (t *Tracker[T]) Failed(owner loop.Key, obj T, err error) {
	if hadNoEffect(err) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.get(owner)
	o.unsure = append(o.unsure, client.KeyOf(obj))
}

// hadNoEffect reports whether a failed call certainly had no effect, because the API refused it. A conflict, or that
// the name is taken, does not count: it may be the answer to a repetition of a call that succeeded.
func hadNoEffect(err error) bool {
	status, answered := err.(apierrors.APIStatus)
	return answered && status.Status().Code < http.StatusInternalServerError &&
		!apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err)
}

// Settled reports whether the view shows everything the controller has written for an owner. The error is that of
// reading the outcome of a write from the API.
func (t *Tracker[T]) Settled(ctx context.Context, owner loop.Key) (bool, error) {
	if err := t.resolveUnsure(ctx, owner); err != nil {
		return false, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.of[owner]
	if o == nil {
		return true, nil
	}
	for uid, obj := range o.deleted {
		if t.deletionShown(obj) {
			delete(o.deleted, uid)
		}
	}
	if len(o.deleted) > 0 || t.view.Revision() < o.revision {
		return false, nil
	}
	delete(t.of, owner)
	return true, nil
}

// resolveUnsure reads from the API what became of failed writes.
func (t *Tracker[T]) resolveUnsure(ctx context.Context, owner loop.Key) error {
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
		case err == nil && mayBeOurs(owner, there):
			t.Wrote(owner, there)
		case err == nil: // another owner's, which took the name: no event of it would wake this owner
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

// mayBeOurs reports whether an object does not belong to another owner. It may be the owner itself, whose status was
// written.
func mayBeOurs(owner loop.Key, obj api.Object) bool {
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

// deletionShown reports whether the view shows that an object is being deleted, or no longer shows it.
func (t *Tracker[T]) deletionShown(obj T) bool {
	now, ok := t.view.Get(obj.GetNamespace(), obj.GetName())
	return !ok || now.GetUID() != obj.GetUID() || now.GetDeletionTimestamp() != nil
}

// Forget drops what was expected for an owner that is deleted.
func (t *Tracker[T]) Forget(owner loop.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, owner)
}
