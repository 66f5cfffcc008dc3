package registry

import (
	"errors"
	"net/http"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/registry/storage"
	"minik8s/internal/store"
)

// Fence keeps a leader that was deposed, and does not know it yet, from writing. It names a version of an object that
// the next leader changes before it does anything else: the transaction of every write under the fence requires that
// the object still has that version. Once it has not, it never has again, so the fence has fallen for good. Whoever
// else changes the object brings it down, too.
type Fence struct {
	guard  store.Change
	fell   func()
	fallen atomic.Bool
}

// NewFence returns a fence that stands as long as the object has the version of this revision. fell, which may be nil,
// is called when the first write is refused because of it, in that write's goroutine.
func NewFence(kind *api.Kind, namespace, name string, revision int64, fell func()) *Fence {
	return &Fence{guard: store.Unchanged(storage.PrefixOf(kind)+storage.KeyOf(kind, namespace, name), revision), fell: fell}
}

// errDeposed is the error of a write behind a fallen fence. It is not a conflict, to which a writer would answer with
// a newer version of its object.
var errDeposed = &apierrors.StatusError{ErrStatus: metav1.Status{
	Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable, Reason: api.ReasonDeposed,
	Message: "nothing was written: this master does not lead any more, or the Lease by which it led was changed",
}}

// before returns the changes of a write with the guard of the fence before them: of several guards that do not hold,
// the first is reported. The error is that the fence has fallen; then the store need not be asked. A nil fence always
// stands.
func (f *Fence) before(change store.Change, more ...store.Change) ([]store.Change, error) {
	all := make([]store.Change, 0, 2+len(more))
	if f != nil {
		if f.fallen.Load() {
			return nil, errDeposed
		}
		all = append(all, f.guard)
	}
	return append(append(all, change), more...), nil
}

// refused reports whether a write failed because the fence has fallen.
func (f *Fence) refused(err error) bool {
	var by *store.Refused
	if f == nil || !errors.As(err, &by) || by.Key != f.guard.Key {
		return false
	}
	if !f.fallen.Swap(true) && f.fell != nil {
		f.fell()
	}
	return true
}
