package registry

import (
	"bytes"
	"context"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
	"minik8s/internal/api/validation"
	"minik8s/internal/store"
)

// Change makes the new object from the old one, which it must not change. It is called again with a
// newer old one when another writer came first.
type Change func(old api.Object) (api.Object, error)

// Update replaces an object, or with sub "status" its status, by obj, which it takes over.
func (r *Registry) Update(ctx context.Context, user User, kind *api.Kind, namespace string, obj api.Object, sub string, opts WriteOptions) (*Entry, error) {
	if err := place(kind, namespace, obj); err != nil {
		return nil, err
	}
	if obj.GetName() == "" {
		return nil, apierrors.NewBadRequest("metadata.name: required for an update")
	}
	return r.modify(ctx, user, "update", kind, obj.GetNamespace(), obj.GetName(), sub, opts, false,
		func(old api.Object) (api.Object, error) { return shallow(obj), nil })
}

// maxRetries bounds how often a patch is tried on a newer object.
const maxRetries = 20

// modify is the one flow of every change to an existing object. retry says that change is applied anew
// when another writer came first, unless what it makes carries a resourceVersion.
func (r *Registry) modify(ctx context.Context, user User, verb string, kind *api.Kind, namespace, name, sub string,
	opts WriteOptions, retry bool, change Change) (*Entry, error) {
	for try := 0; ; try++ {
		old, err := r.read(ctx, kind, namespace, name)
		if err != nil {
			return nil, err
		}
		if err := r.authorize(user, Access{Verb: verb, Kind: kind, Sub: sub, Namespace: namespace, Name: name, Old: old.Object()}); err != nil {
			return nil, err
		}
		obj, err := change(old.Object())
		if err != nil {
			return nil, err
		}
		given := obj.GetResourceVersion()
		if given != "" && given != strconv.FormatInt(old.rev, 10) && given != "0" {
			return nil, conflict(kind, name)
		}
		e, err := r.replace(ctx, kind, old, obj, sub, opts)
		unguarded := given == "" || given == "0" || retry
		if err == nil || !apierrors.IsConflict(err) || !unguarded || try >= maxRetries {
			return e, err
		}
	}
}

// read is the current version of an object.
func (r *Registry) read(ctx context.Context, kind *api.Kind, namespace, name string) (*Entry, error) {
	if err := r.cache.current(ctx); err != nil {
		return nil, storeErr(kind, name, err)
	}
	e := r.cache.byRow[kind].get(keyOf(kind, namespace, name))
	if e == nil {
		return nil, apierrors.NewNotFound(kind.GR(), name)
	}
	return e, nil
}

// replace writes obj over old, if old is still the newest.
func (r *Registry) replace(ctx context.Context, kind *api.Kind, old *Entry, obj api.Object, sub string, opts WriteOptions) (*Entry, error) {
	before := old.Object()
	s := r.strategies[kind]
	if uid := obj.GetUID(); uid != "" && uid != before.GetUID() {
		return nil, apierrors.NewConflict(kind.GR(), before.GetName(), field.Invalid(field.NewPath("metadata", "uid"), uid,
			"the object was deleted and made anew with uid "+string(before.GetUID())))
	}
	keepSystemFields(obj, before)
	errs := r.prepareUpdate(kind, s, obj, before, sub, opts)
	if err := invalid(kind, before.GetName(), errs); err != nil {
		return nil, err
	}
	if s.AdmitUpdate != nil && sub == "" {
		if err := s.AdmitUpdate(obj, Beside{r.cache}); err != nil {
			return nil, apierrors.NewForbidden(kind.GR(), before.GetName(), err)
		}
	}
	if obj.GetDeletionTimestamp() != nil && r.mayGo(kind, obj) {
		return r.remove(ctx, kind, old, obj, opts)
	}
	raw, err := encode(kind, obj)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if bytes.Equal(raw, old.raw) {
		return old, nil // nothing changed: no write, no event
	}
	if opts.DryRun {
		return newEntry(kind, old.key, old.rev, raw, nil), nil
	}
	if essential(kind, before, sub) {
		ctx = store.Essential(ctx)
	}
	return r.write(ctx, kind, old.key, obj, raw, func() (int64, error) {
		return r.store.Update(ctx, prefixOf(kind)+old.key, raw, old.rev)
	})
}

// essential says that a change has to be written also when the store is nearly full: what is on its way out
// ends by changes (finalizers go, pods stop), and without heartbeats and Leases nothing would be deleted.
func essential(kind *api.Kind, before api.Object, sub string) bool {
	return before.GetDeletionTimestamp() != nil || kind == api.Leases || kind == api.Nodes && sub == "status"
}

// keepSystemFields: what no update can change.
func keepSystemFields(obj, old api.Object) {
	obj.SetUID(old.GetUID())
	obj.SetName(old.GetName())
	obj.SetNamespace(old.GetNamespace())
	obj.SetGenerateName(old.GetGenerateName())
	obj.SetCreationTimestamp(old.GetCreationTimestamp())
	obj.SetDeletionTimestamp(old.GetDeletionTimestamp())
	obj.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	obj.SetGeneration(old.GetGeneration())
	obj.SetSelfLink("")
	obj.SetManagedFields(nil)
}

// prepareUpdate takes from obj what this kind of write may change and validates the result.
func (r *Registry) prepareUpdate(kind *api.Kind, s *Strategy, obj, old api.Object, sub string, opts WriteOptions) field.ErrorList {
	switch sub {
	case "", api.ScaleSubresource: // what a scale changes is the spec
		if kind.Status && s.CopyStatus != nil {
			s.CopyStatus(obj, old)
		}
		if s.PrepareUpdate != nil {
			s.PrepareUpdate(obj, old)
		}
		if s.Default != nil {
			s.Default(obj)
		}
		if s.SpecChanged != nil && s.SpecChanged(obj, old) {
			obj.SetGeneration(old.GetGeneration() + 1)
		}
		errs := validation.ObjectMetaUpdate(obj, old, kind.Namespaced)
		if s.Validate != nil {
			errs = append(errs, s.Validate(obj)...)
		}
		if s.ValidateUpdate != nil {
			errs = append(errs, s.ValidateUpdate(obj, old)...)
		}
		if len(errs) == 0 && s.Warnings != nil {
			opts.warn(s.Warnings(obj))
		}
		return errs
	case "status":
		keepSpec(s, obj, old)
		errs := validation.ObjectMetaUpdate(obj, old, kind.Namespaced)
		if s.ValidateStatus != nil {
			errs = append(errs, s.ValidateStatus(obj, old)...)
		}
		return errs
	}
	given := shallow(obj)
	overwrite(obj, old.DeepCopyObject().(api.Object))
	return s.Subresources[sub](obj, given)
}

// keepSpec makes obj the old object with obj's status and, as in Kubernetes, its labels, annotations
// and finalizers.
func keepSpec(s *Strategy, obj, old api.Object) {
	given := shallow(obj)
	overwrite(obj, old.DeepCopyObject().(api.Object))
	s.CopyStatus(obj, given)
	obj.SetLabels(given.GetLabels())
	obj.SetAnnotations(given.GetAnnotations())
	obj.SetFinalizers(given.GetFinalizers())
}

// Bind gives a pod its node, once.
func (r *Registry) Bind(ctx context.Context, user User, namespace, name string, b Binding, opts WriteOptions) (*Entry, error) {
	return r.modify(ctx, user, "create", api.Pods, namespace, name, "binding", opts, true,
		func(old api.Object) (api.Object, error) { return bound(old, b, r.now()) })
}

// mayGo says that nothing holds a deleted object any more.
func (r *Registry) mayGo(kind *api.Kind, obj api.Object) bool {
	s := r.strategies[kind]
	if len(obj.GetFinalizers()) > 0 || s.Empty != nil && !s.Empty(obj) {
		return false
	}
	return s.Grace == nil || obj.GetDeletionGracePeriodSeconds() == nil || *obj.GetDeletionGracePeriodSeconds() == 0
}
