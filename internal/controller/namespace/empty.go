package namespace

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/controller/pods"
)

// remains is what is left of one kind after its objects were deleted.
type remains struct {
	kind       *api.Kind
	count      int
	untouched  int            // of these, those whose deletion has not begun
	finalizers map[string]int // how many of the objects each of them holds
	revision   string         // of the list that says so
}

// empty deletes what is in the namespace and says what is left. Pods go first: while they run they may
// need the rest, and what they still do is bounded by it. An error does not keep the other objects.
func (n *Controller) empty(ctx context.Context, ns string) ([]remains, error) {
	left, err := n.clear(ctx, ns, []*api.Kind{api.Pods})
	if err != nil || len(left) > 0 {
		return left, err
	}
	return n.clear(ctx, ns, others(n.table))
}

// others are the namespaced kinds but Pods.
func others(table *api.Table) []*api.Kind {
	var out []*api.Kind
	for _, k := range table.Stored() {
		if k.Namespaced && k != api.Pods {
			out = append(out, k)
		}
	}
	return out
}

// clear deletes every object of these kinds.
func (n *Controller) clear(ctx context.Context, ns string, kinds []*api.Kind) (left []remains, err error) {
	var found []*api.Kind
	var going []doomed
	var errs []error
	for _, kind := range kinds {
		list, err := n.client.List(ctx, kind, client.ListOptions{Namespace: ns})
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", kind, err))
			continue
		}
		if len(list.Items) > 0 {
			found = append(found, kind)
		}
		for _, obj := range untouched(list.Items) {
			going = append(going, doomed{kind, obj})
		}
	}
	errs = append(errs, n.deleteAll(ctx, going)...)
	for _, kind := range found {
		list, err := n.client.List(ctx, kind, client.ListOptions{Namespace: ns})
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", kind, err))
			continue
		}
		if len(list.Items) > 0 {
			left = append(left, remainsOf(kind, list))
		}
	}
	return left, errors.Join(errs...)
}

// doomed is an object that is to be deleted, with its kind.
type doomed struct {
	kind *api.Kind
	obj  api.Object
}

// untouched are the objects whose deletion has not begun.
func untouched(items []api.Object) []api.Object {
	var out []api.Object
	for _, obj := range items {
		if obj.GetDeletionTimestamp() == nil {
			out = append(out, obj)
		}
	}
	return out
}

func remainsOf(kind *api.Kind, list *client.List) remains {
	r := remains{kind: kind, count: len(list.Items), untouched: len(untouched(list.Items)),
		finalizers: map[string]int{}, revision: list.ResourceVersion}
	for _, obj := range list.Items {
		for _, f := range obj.GetFinalizers() {
			r.finalizers[f]++
		}
	}
	return r
}

// failure is an error, and the place of its object in the list.
type failure struct {
	at  int
	err error
}

// deleteAll deletes objects side by side. It returns the first error of each kind: a thousand alike would
// say no more.
func (n *Controller) deleteAll(ctx context.Context, objs []doomed) []error {
	var mu sync.Mutex
	failed := map[*api.Kind]failure{}
	fail := func(kind *api.Kind, f failure) {
		mu.Lock()
		defer mu.Unlock()
		if was, ok := failed[kind]; !ok || f.at < was.at { // of those that failed the first in the list, whichever came first
			failed[kind] = f
		}
	}
	err := pods.All(len(objs), func(i int) error {
		if err := n.deleteOne(ctx, objs[i]); err != nil {
			kind := objs[i].kind
			fail(kind, failure{i, fmt.Errorf("%s %s: %w", kind, objs[i].obj.GetName(), err)})
		}
		return nil // one failure keeps no other object
	})
	if err != nil { // a panic
		return []error{err}
	}
	var errs []error
	for _, kind := range n.table.Stored() { // in their order, so that the condition's text stays the same
		if f, ok := failed[kind]; ok {
			errs = append(errs, f.err)
		}
	}
	return errs
}

// deleteOne deletes the very object that was listed. One that is gone, or another by now, is the next
// round's.
func (n *Controller) deleteOne(ctx context.Context, d doomed) error {
	at := client.Key{Kind: d.kind, Namespace: d.obj.GetNamespace(), Name: d.obj.GetName()}
	_, err := n.client.Delete(ctx, at, &metav1.DeleteOptions{
		Preconditions:     metav1.NewUIDPreconditions(string(d.obj.GetUID())),
		PropagationPolicy: new(metav1.DeletePropagationBackground), // each dependent is in here too, or is the collector's
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
