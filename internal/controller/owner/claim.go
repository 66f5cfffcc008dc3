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

// Relation is how an object and a possible controller of it are related, and so what to do.
type Relation int

// The relations.
const (
	Ignore  Relation = iota // another owner's, or no owner's and not to be adopted
	Keep                    // the owner's, and it matches
	Adopt                   // without a controller, and it matches
	Release                 // the owner's, but it no longer matches
)

// RelationOf is Kubernetes' rule of ownership (ClaimObject in pkg/controller/controller_ref_manager.go).
func RelationOf(owner api.Object, selector labels.Selector, obj api.Object) Relation {
	matches := selector.Matches(labels.Set(obj.GetLabels()))
	ownerDeleting := owner.GetDeletionTimestamp() != nil
	if ref := metav1.GetControllerOfNoCopy(obj); ref != nil {
		switch {
		case ref.UID != owner.GetUID():
			return Ignore
		case matches:
			return Keep
		case ownerDeleting:
			return Ignore
		}
		return Release
	}
	if ownerDeleting || !matches || obj.GetDeletionTimestamp() != nil || obj.GetNamespace() != owner.GetNamespace() {
		return Ignore
	}
	return Adopt
}

// Ref is the reference by which an object names its controller.
func Ref(o api.Object) metav1.OwnerReference {
	return *metav1.NewControllerRef(o, api.KindOf(o).GVK())
}

// Claim adopts and releases objects, and returns those that are the owner's. finalizers are put on adopted objects.
// With an error, the first of adopting or releasing, it returns what could be claimed.
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
		switch RelationOf(owner, selector, obj) {
		case Ignore:
		case Keep:
			mine = append(mine, obj)
		case Release:
			failed(release(ctx, c, owner, obj))
		case Adopt:
			if !checked {
				checked, mayAdopt = true, confirmExists(ctx, c, owner)
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

// confirmExists asks the API, not a cache: an owner that was just deleted must not adopt anything.
func confirmExists(ctx context.Context, c client.Interface, owner api.Object) error {
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
		return nil // deleted, or replaced by another object
	}
	return err
}

// DropRefs removes the references to these owners from an object. Errors are the API's.
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
