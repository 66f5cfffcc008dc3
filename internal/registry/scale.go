package registry

import (
	"context"
	"encoding/json"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
	"minik8s/internal/registry/decode"
	"minik8s/internal/registry/patch"
	"minik8s/internal/registry/storage"
)

// ScaleStrategy reads and sets the number of replicas of a kind without knowing the kind.
type ScaleStrategy struct {
	// Get fills in the kind's own part: the wanted replicas, the current ones, the selector.
	Get func(obj api.Object, into *autoscalingv1.Scale)
	// Set sets the wanted number of replicas.
	Set func(obj api.Object, replicas int32)
}

// ScaleKind is the kind of the body of the subresource scale. It is never stored, so it is not in the table of kinds.
var ScaleKind = &api.Kind{Group: "autoscaling", Version: "v1", Kind: "Scale", Plural: "scales", Singular: "scale",
	Namespaced: true, New: func() api.Object { return &autoscalingv1.Scale{} }}

// scaleOf returns the Scale of an object whose kind has one.
func (r *Registry) scaleOf(kind *api.Kind, obj api.Object) *autoscalingv1.Scale {
	s := &autoscalingv1.Scale{
		TypeMeta: metav1.TypeMeta{Kind: ScaleKind.Kind, APIVersion: ScaleKind.APIVersion()},
		ObjectMeta: metav1.ObjectMeta{Name: obj.GetName(), Namespace: obj.GetNamespace(), UID: obj.GetUID(),
			ResourceVersion: obj.GetResourceVersion(), CreationTimestamp: obj.GetCreationTimestamp()},
	}
	r.Strategy(kind).Scale.Get(obj, s)
	return s
}

func (r *Registry) needScale(q *Request) error {
	if s := r.Strategy(q.Kind); s == nil || s.Scale == nil {
		return apierrors.NewNotFound(q.Kind.GR(), q.Name+"/"+api.ScaleSubresource)
	}
	return nil
}

// GetScale reads the scale of an object. The error is 404 if the object or its scale does not exist.
func (r *Registry) GetScale(ctx context.Context, q *Request) (*autoscalingv1.Scale, error) {
	if err := r.needScale(q); err != nil {
		return nil, err
	}
	e, err := r.Get(ctx, q)
	if err != nil {
		return nil, err
	}
	return r.scaleOf(q.Kind, e.Object()), nil
}

// UpdateScale sets the replicas to those in given. If given has a resourceVersion, the object must be at that
// version.
func (r *Registry) UpdateScale(ctx context.Context, q *Request, given *autoscalingv1.Scale, opts WriteOptions) (*autoscalingv1.Scale, error) {
	return r.changeScale(ctx, "update", q, opts, func(*autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
		return given, nil
	})
}

// PatchScale changes an object's scale by a patch of the Scale.
func (r *Registry) PatchScale(ctx context.Context, q *Request, patchType types.PatchType, data []byte, validation string, opts WriteOptions) (*autoscalingv1.Scale, error) {
	return r.changeScale(ctx, "patch", q, opts, func(old *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
		before, err := json.Marshal(old)
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		after, err := patch.Apply(ScaleKind, q.Name, patchType, before, data)
		if err != nil {
			return nil, err
		}
		obj, warnings, err := decode.Manifest(ScaleKind, nil, after, validation)
		if err != nil {
			return nil, decode.BadRequest(err)
		}
		opts.warn(warnings)
		s := obj.(*autoscalingv1.Scale)
		if s.ResourceVersion == old.ResourceVersion && !patch.NamesRevision(data) {
			s.ResourceVersion = ""
		}
		return s, nil
	})
}

func (r *Registry) changeScale(ctx context.Context, verb string, q *Request, opts WriteOptions,
	change func(old *autoscalingv1.Scale) (*autoscalingv1.Scale, error)) (*autoscalingv1.Scale, error) {
	if err := r.needScale(q); err != nil {
		return nil, err
	}
	if err := r.authorizeAs(ctx, verb, q); err != nil {
		return nil, err
	}
	kind, name := q.Kind, q.Name
	e, err := r.modify(ctx, q, opts, false, func(old api.Object) (api.Object, error) {
		given, err := change(r.scaleOf(kind, old))
		if err != nil {
			return nil, err
		}
		if given.Name != "" && given.Name != name {
			return nil, apierrors.NewBadRequest("metadata.name: " + given.Name + " does not match the name of the path, " + name)
		}
		if given.UID != "" && given.UID != old.GetUID() {
			return nil, storage.Conflict(kind, name)
		}
		if given.Spec.Replicas < 0 {
			return nil, invalid(ScaleKind, name, field.ErrorList{field.Invalid(field.NewPath("spec", "replicas"), given.Spec.Replicas,
				"must be greater than or equal to 0")})
		}
		obj := old.DeepCopyObject().(api.Object)
		r.Strategy(kind).Scale.Set(obj, given.Spec.Replicas)
		obj.SetResourceVersion(given.ResourceVersion)
		return obj, nil
	})
	if err != nil {
		return nil, err
	}
	return r.scaleOf(kind, e.Object()), nil
}
