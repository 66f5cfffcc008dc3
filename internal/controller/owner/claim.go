package owner

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// Verdict is what to do about an object that may belong to an owner.
type Verdict int

// The verdicts.
const (
	Ignore  Verdict = iota // it belongs to another, or to nobody and not to us either
	Keep                   // it is ours and matches
	Adopt                  // it is nobody's and matches
	Release                // it is ours and matches no more
)

// Judge is the rule of ownership.
func Judge(owner api.Object, selector labels.Selector, obj api.Object) Verdict {
	matches := selector.Matches(labels.Set(obj.GetLabels()))
	going := owner.GetDeletionTimestamp() != nil
	if ref := metav1.GetControllerOfNoCopy(obj); ref != nil {
		switch {
		case ref.UID != owner.GetUID():
			return Ignore
		case matches:
			return Keep
		case going:
			return Ignore
		}
		return Release
	}
	if going || !matches || obj.GetDeletionTimestamp() != nil || obj.GetNamespace() != owner.GetNamespace() {
		return Ignore
	}
	return Adopt
}

// Ref is the reference by which an object names its controller.
func Ref(o api.Object) metav1.OwnerReference {
	return *metav1.NewControllerRef(o, api.KindOf(o).GVK())
}

// Claim returns those of objs that are the owner's, after adopting and releasing. finalizers are put on
// what is adopted. With an error it returns what was claimed until then.
func Claim[T api.Object](ctx context.Context, c client.Interface, owner api.Object, selector labels.Selector, objs []T, finalizers ...string) ([]T, error) {
	var mine []T
	var firstErr error
	failed := func(err error) {
		if err != nil && firstErr == nil {
			firstErr = err
		}
	}
	checked, mayAdopt := false, error(nil)
	for _, obj := range objs {
		switch Judge(owner, selector, obj) {
		case Ignore:
		case Keep:
			mine = append(mine, obj)
		case Release:
			failed(release(ctx, c, owner, obj))
		case Adopt:
			if !checked {
				checked, mayAdopt = true, stillThere(ctx, c, owner)
			}
			if mayAdopt != nil {
				failed(mayAdopt)
				continue
			}
			adopted, err := adopt(ctx, c, owner, obj, finalizers)
			if err != nil {
				if !apierrors.IsNotFound(err) {
					failed(err)
				}
				continue
			}
			mine = append(mine, adopted.(T))
		}
	}
	return mine, firstErr
}

// stillThere asks the API, not a cache: an owner that was deleted a moment ago must adopt nothing.
func stillThere(ctx context.Context, c client.Interface, owner api.Object) error {
	fresh, err := c.Get(ctx, client.KeyOf(owner))
	switch {
	case err != nil:
		return err
	case fresh.GetUID() != owner.GetUID():
		return fmt.Errorf("%s/%s was deleted and made anew", owner.GetNamespace(), owner.GetName())
	case fresh.GetDeletionTimestamp() != nil:
		return fmt.Errorf("%s/%s is being deleted", owner.GetNamespace(), owner.GetName())
	}
	return nil
}

func adopt(ctx context.Context, c client.Interface, owner, obj api.Object, finalizers []string) (api.Object, error) {
	meta := map[string]any{"uid": obj.GetUID(), "ownerReferences": []any{Ref(owner)}}
	if len(finalizers) > 0 {
		meta["finalizers"] = finalizers
	}
	return patch(ctx, c, obj, meta)
}

func release(ctx context.Context, c client.Interface, owner, obj api.Object) error {
	err := DropRefs(ctx, c, obj, owner.GetUID())
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) || apierrors.IsConflict(err) {
		return nil // gone, or another object by now
	}
	return err
}

// DropRefs takes the references to owners off an object.
func DropRefs(ctx context.Context, c client.Interface, obj api.Object, owners ...types.UID) error {
	var refs []any
	for _, uid := range owners {
		refs = append(refs, map[string]any{"$patch": "delete", "uid": uid})
	}
	_, err := patch(ctx, c, obj, map[string]any{"uid": obj.GetUID(), "ownerReferences": refs})
	return err
}

func patch(ctx context.Context, c client.Interface, obj api.Object, meta map[string]any) (api.Object, error) {
	data, err := json.Marshal(map[string]any{"metadata": meta})
	if err != nil {
		return nil, err
	}
	return c.Patch(ctx, client.KeyOf(obj), client.Patch{Type: types.StrategicMergePatchType, Data: data}, client.WriteOptions{})
}
