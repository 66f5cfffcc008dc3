package registry

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
	"minik8s/internal/api/validation"
	"minik8s/internal/registry/storage"
	"minik8s/internal/store"
)

// Change makes the new object from the old one, which it must not change. It is called again with a
// newer old one when another writer came first.
type Change func(old api.Object) (api.Object, error)

// Update replaces an object, or with the subresource status its status, by obj, which it takes over.
func (r *Registry) Update(ctx context.Context, q *Request, obj api.Object, opts WriteOptions) (*Entry, error) {
	if err := r.authorizeAs(ctx, "update", q); err != nil {
		return nil, err
	}
	if err := place(q.Kind, q.Namespace, obj); err != nil {
		return nil, err
	}
	shape := r.shapeOf(q)
	if obj.GetName() == "" && shape.form != nil {
		obj.SetName(q.Name)
	}
	if obj.GetName() != q.Name || q.Name == "" { // also a missing one: such a body is no object of ours, and would empty it
		return nil, apierrors.NewBadRequest(fmt.Sprintf("metadata.name: %q is not the name of the path, %q", obj.GetName(), q.Name))
	}
	return r.modify(ctx, q, opts, false, func(old api.Object) (api.Object, error) { return shape.stored(storage.Shallow(obj), old) })
}

// maxRetries bounds how often a patch is tried on a newer object.
const maxRetries = 20

// modify is the one flow of every change to an existing object. retry says that change is applied anew
// when another writer came first, unless what it makes carries a resourceVersion.
func (r *Registry) modify(ctx context.Context, q *Request, opts WriteOptions, retry bool, change Change) (*Entry, error) {
	if err := r.Authorize(ctx, q); err != nil {
		return nil, err
	}
	defer q.endTurn()
	for try := 0; ; try++ {
		old, err := r.read(ctx, q.Kind, q.Namespace, q.Name)
		if err != nil {
			return nil, err
		}
		if err := r.changeable(q, old); err != nil {
			return nil, err
		}
		obj, err := change(old.Object())
		if err != nil {
			return nil, err
		}
		given := obj.GetResourceVersion()
		if given != "" && given != strconv.FormatInt(old.Revision(), 10) && given != "0" {
			return nil, storage.Conflict(q.Kind, q.Name)
		}
		e, err := r.replace(ctx, q, old, obj, opts)
		again, err := r.outrun(ctx, q, err, try)
		if again {
			continue
		}
		unguarded := given == "" || given == "0" || retry
		if err == nil || !apierrors.IsConflict(err) || !unguarded || try >= maxRetries {
			return e, err
		}
	}
}

// read is the current version of an object.
func (r *Registry) read(ctx context.Context, kind *api.Kind, namespace, name string) (*Entry, error) {
	if err := r.cache.Current(ctx); err != nil {
		return nil, storage.Error(kind, name, err)
	}
	e := r.cache.Of(kind).Get(storage.KeyOf(kind, namespace, name))
	if e == nil {
		return nil, apierrors.NewNotFound(kind.GR(), name)
	}
	return e, nil
}

// changeable refuses (403) to change or delete what another object implies: it can only be changed there.
func (r *Registry) changeable(q *Request, e *Entry) error {
	if !e.Implied() {
		return nil
	}
	return apierrors.NewForbidden(q.Kind.GR(), e.Object().GetName(), errors.New(impliedText))
}

const impliedText = "it is there as long as another object has it: change or delete that one"

// replace writes obj over old, if old is still the newest.
func (r *Registry) replace(ctx context.Context, q *Request, old *Entry, obj api.Object, opts WriteOptions) (*Entry, error) {
	kind, before := q.Kind, old.Object()
	s := r.Strategy(kind)
	if uid := obj.GetUID(); uid != "" && uid != before.GetUID() {
		return nil, apierrors.NewConflict(kind.GR(), before.GetName(), field.Invalid(field.NewPath("metadata", "uid"), uid,
			"the object was deleted and made anew with uid "+string(before.GetUID())))
	}
	keepSystemFields(obj, before)
	errs := r.split(q, s, obj, before, opts)
	errs = append(errs, r.prepareUpdate(kind, s, obj, before, q.Sub, opts)...)
	if s.Author != nil {
		s.Author(obj, before, q.User)
	}
	if err := Invalid(kind, before.GetName(), errs); err != nil {
		return nil, err
	}
	if !opts.applied {
		r.fields.Written(kind, q.Sub, before, obj, opts.managerOf(q.User))
	}
	q.Old, q.New = before, obj
	if err := r.admit(ctx, q); err != nil {
		return nil, err
	}
	if obj.GetDeletionTimestamp() != nil && r.mayGo(kind, obj) {
		return r.remove(ctx, q, old, obj, opts)
	}
	if opts.DryRun {
		if err := r.preview(ctx, kind, obj); err != nil {
			return nil, err
		}
	}
	raw, err := storage.Encode(kind, obj)
	if err == nil && !old.Equal(raw) && onlyTimes(obj, before) {
		raw, err = withTimesOf(kind, obj, before, raw, old)
	}
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if old.Equal(raw) && !q.keeps {
		return old, nil // nothing changed: no write, no event
	}
	if opts.DryRun {
		return storage.NewEntry(kind, old.Key(), old.Revision(), raw, nil), nil
	}
	if before.GetDeletionTimestamp() != nil { // what is on its way out ends by changes: finalizers go, pods stop
		ctx = store.Essential(ctx)
	}
	return r.write(ctx, q, old.Key(), obj, raw, store.Update(storage.PrefixOf(kind)+old.Key(), raw, old.Revision()))
}

// onlyTimes reports whether what is noted of who owns which fields differs in the times alone.
func onlyTimes(obj, before api.Object) bool {
	a, b := obj.GetManagedFields(), before.GetManagedFields()
	return len(a) > 0 && slices.EqualFunc(a, b, func(x, y metav1.ManagedFieldsEntry) bool {
		x.Time, y.Time = nil, nil
		return equality.Semantic.DeepEqual(x, y)
	})
}

// withTimesOf is obj as it is stored, with the times of its managed fields as they were if nothing else has changed: what is
// applied may be the same only after defaults and admission, which the times were set before. Kubernetes does so, too.
func withTimesOf(kind *api.Kind, obj, before api.Object, raw []byte, old *Entry) ([]byte, error) {
	changed := obj.GetManagedFields()
	obj.SetManagedFields(before.GetManagedFields())
	same, err := storage.Encode(kind, obj)
	if err != nil || old.Equal(same) {
		return same, err
	}
	obj.SetManagedFields(changed)
	return raw, nil
}

// managerOf is who is noted for a write: as it says, or as the user is called.
func (o WriteOptions) managerOf(u User) string {
	if o.Manager != "" {
		return o.Manager
	}
	return u.Name[strings.LastIndexByte(u.Name, ':')+1:]
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
}

// prepareUpdate takes from obj what this kind of write may change and validates the result.
func (r *Registry) prepareUpdate(kind *api.Kind, s *Strategy, obj, old api.Object, sub string, opts WriteOptions) field.ErrorList {
	switch {
	case sub == "" || s.FormOf(sub) != nil: // what a form changes is a part of the whole
		if s.CopyStatus != nil && kind.HasStatus() {
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
			opts.warn(s.Warnings(obj, Lister{r.cache}))
		}
		return errs
	case sub == api.StatusSubresource:
		keepSpec(s, obj, old)
		errs := validation.ObjectMetaUpdate(obj, old, kind.Namespaced)
		if s.ValidateStatus != nil {
			errs = append(errs, s.ValidateStatus(obj, old)...)
		}
		return errs
	}
	given := storage.Shallow(obj)
	overwrite(obj, old.DeepCopyObject().(api.Object))
	obj.SetManagedFields(given.GetManagedFields())
	errs := s.Subresources[sub].Part(obj, given)
	if len(errs) == 0 && s.Warnings != nil && opts.Warn != nil {
		opts.warn(s.Warnings(obj, Lister{r.cache}))
	}
	return errs
}

// keepSpec makes obj the old object with obj's status and, as in Kubernetes, its labels, annotations
// and finalizers.
func keepSpec(s *Strategy, obj, old api.Object) {
	given := storage.Shallow(obj)
	overwrite(obj, old.DeepCopyObject().(api.Object))
	s.CopyStatus(obj, given)
	obj.SetLabels(given.GetLabels())
	obj.SetAnnotations(given.GetAnnotations())
	obj.SetFinalizers(given.GetFinalizers())
	obj.SetManagedFields(given.GetManagedFields())
}

// mayGo says that nothing holds a deleted object any more.
func (r *Registry) mayGo(kind *api.Kind, obj api.Object) bool {
	s := r.Strategy(kind)
	if len(obj.GetFinalizers()) > 0 || s.Empty != nil && !s.Empty(obj) {
		return false
	}
	return s.Grace == nil || obj.GetDeletionGracePeriodSeconds() == nil || *obj.GetDeletionGracePeriodSeconds() == 0
}

// overwrite makes *dst what *src is; both are of one type.
func overwrite(dst, src api.Object) {
	reflect.ValueOf(dst).Elem().Set(reflect.ValueOf(src).Elem())
}
