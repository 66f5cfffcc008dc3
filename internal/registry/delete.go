package registry

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/registry/storage"
	"minik8s/internal/store"
)

// Delete starts the deletion of an object. It removes the object at once if it has no finalizer and no grace period.
// It returns the object as it is now, and whether it was removed. A precondition that does not hold is a conflict
// (409). Other errors are 400, 403, 404, and those of storage.Error.
func (r *Registry) Delete(ctx context.Context, q *Request, opts *metav1.DeleteOptions) (e *Entry, removed bool, err error) {
	if err := r.authorizeAs(ctx, "delete", q); err != nil {
		return nil, false, err
	}
	if opts == nil {
		opts = &metav1.DeleteOptions{}
	}
	kind := q.Kind
	for try := 0; ; try++ {
		old, err := r.read(ctx, kind, q.Namespace, q.Name)
		if err != nil {
			return nil, false, err
		}
		if err := r.changeable(q, old); err != nil {
			return nil, false, err
		}
		q.Old = old.Object()
		if err := r.admit(ctx, q); err != nil {
			return nil, false, err
		}
		if err := CheckPreconditions(kind, old.Object(), opts.Preconditions); err != nil {
			return nil, false, err
		}
		e, removed, err := r.delete(ctx, q, old, opts)
		if err == nil || !apierrors.IsConflict(err) || try >= maxRetries {
			return e, removed, err
		}
	}
}

// CheckPreconditions refuses (409) an object that is not the one that a deletion means.
func CheckPreconditions(kind *api.Kind, obj api.Object, p *metav1.Preconditions) error {
	if p == nil {
		return nil
	}
	if p.UID != nil && *p.UID != obj.GetUID() || p.ResourceVersion != nil && *p.ResourceVersion != obj.GetResourceVersion() {
		return Conflictf(kind, obj.GetName(), "the precondition (uid, resourceVersion) does not match the object's uid %s and resourceVersion %s",
			obj.GetUID(), obj.GetResourceVersion())
	}
	return nil
}

func (r *Registry) delete(ctx context.Context, q *Request, old *Entry, opts *metav1.DeleteOptions) (*Entry, bool, error) {
	kind := q.Kind
	obj, err := r.deleting(kind, old.Object(), opts)
	if err != nil {
		return nil, false, err
	}
	dry := WriteOptions{DryRun: slices.Contains(opts.DryRun, metav1.DryRunAll)}
	if r.mayGo(kind, obj) {
		e, err := r.remove(ctx, q, old, obj, dry)
		return e, err == nil, err
	}
	raw, err := storage.Encode(kind, obj)
	if err != nil {
		return nil, false, apierrors.NewInternalError(err)
	}
	if old.Equal(raw) || dry.DryRun {
		return storage.NewEntry(kind, old.Key(), old.Revision(), raw, nil), false, nil
	}
	e, err := r.write(store.Essential(ctx), q, old.Key(), obj, raw, store.Update(storage.PrefixOf(kind)+old.Key(), raw, old.Revision()))
	return e, false, err
}

// deleting returns the object with its deletion begun: with a deletion timestamp, and the finalizers of the requested
// policy. A second deletion may shorten the grace period, never lengthen it.
func (r *Registry) deleting(kind *api.Kind, before api.Object, opts *metav1.DeleteOptions) (api.Object, error) {
	s := r.Strategy(kind)
	grace := int64(0)
	if s.Grace != nil {
		grace = s.Grace(before, opts.GracePeriodSeconds)
	}
	begun := before.GetDeletionTimestamp() != nil
	shorter := s.Grace != nil && before.GetDeletionGracePeriodSeconds() != nil && grace < *before.GetDeletionGracePeriodSeconds()
	obj := before.DeepCopyObject().(api.Object)
	finalizers, err := propagated(obj.GetFinalizers(), opts, s.Orphans)
	if err != nil {
		return nil, err
	}
	if !begun || s.Grace == nil || shorter {
		obj.SetFinalizers(finalizers) // an object that is already ending gracefully keeps its finalizers
	}
	if !begun || shorter {
		t := metav1.NewTime(r.now().UTC().Truncate(time.Second).Add(time.Duration(grace) * time.Second))
		obj.SetDeletionTimestamp(&t)
		obj.SetDeletionGracePeriodSeconds(&grace)
	}
	if !begun && s.SpecChanged != nil {
		obj.SetGeneration(obj.GetGeneration() + 1)
	}
	if s.PrepareUpdate != nil {
		s.PrepareUpdate(obj, before)
	}
	return obj, nil
}

// propagated returns the finalizers of an object to be deleted. Two finalizers tell the garbage collector the
// propagation policy; they are set to match the requested policy, so a second deletion may choose another one. If no
// policy is requested, they stay as they are. If there are none either, orphans says whether the kind's default is to
// orphan.
func propagated(have []string, opts *metav1.DeleteOptions, orphans bool) ([]string, error) {
	want, asked, err := policyFinalizer(opts)
	if err != nil {
		return have, err
	}
	isPolicy := func(f string) bool {
		return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
	}
	if !asked {
		if !orphans || slices.ContainsFunc(have, isPolicy) {
			return have, nil
		}
		want = metav1.FinalizerOrphanDependents
	}
	out := slices.DeleteFunc(slices.Clone(have), isPolicy)
	if want != "" {
		out = append(out, want)
	}
	if slices.Equal(slices.Sorted(slices.Values(out)), slices.Sorted(slices.Values(have))) {
		return have, nil // the same finalizers in another order: nothing to write
	}
	return out, nil
}

// DeleteWarning returns the warning for deleting objects of a kind with these options; usually it is empty.
func (r *Registry) DeleteWarning(kind *api.Kind, opts *metav1.DeleteOptions) string {
	if _, asked, err := policyFinalizer(opts); asked || err != nil {
		return ""
	}
	return r.Strategy(kind).OrphanWarning
}

// CheckDelete refuses (400) options that contradict each other or are not known.
func CheckDelete(opts *metav1.DeleteOptions) error {
	_, _, err := policyFinalizer(opts)
	return err
}

// policyFinalizer returns the finalizer of the requested policy, and whether one is requested. Background has no
// finalizer.
func policyFinalizer(opts *metav1.DeleteOptions) (finalizer string, asked bool, err error) {
	//lint:ignore SA1019 old clients send the first
	orphan, policy := opts.OrphanDependents, opts.PropagationPolicy
	switch {
	case orphan != nil && policy != nil:
		return "", false, apierrors.NewBadRequest("propagationPolicy: orphanDependents and propagationPolicy cannot be both set")
	case orphan != nil && *orphan:
		return metav1.FinalizerOrphanDependents, true, nil
	case orphan != nil:
		return "", true, nil
	case policy == nil:
		return "", false, nil
	}
	switch *policy {
	case metav1.DeletePropagationBackground:
		return "", true, nil
	case metav1.DeletePropagationForeground:
		return metav1.FinalizerDeleteDependents, true, nil
	case metav1.DeletePropagationOrphan:
		return metav1.FinalizerOrphanDependents, true, nil
	}
	return "", false, apierrors.NewBadRequest("propagationPolicy: " + strconv.Quote(string(*policy)) + " is none of Background, Foreground, Orphan")
}

// remove deletes the object from the store, if old is still its newest version.
func (r *Registry) remove(ctx context.Context, q *Request, old *Entry, last api.Object, opts WriteOptions) (*Entry, error) {
	kind := q.Kind
	raw, err := storage.Encode(kind, last)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if opts.DryRun {
		return storage.NewEntry(kind, old.Key(), old.Revision(), raw, last), nil
	}
	changes, err := q.Fence.before(store.Delete(storage.PrefixOf(kind)+old.Key(), old.Revision()))
	if err != nil {
		return nil, err
	}
	rev, err := r.store.Write(ctx, changes...)
	if err != nil {
		if q.Fence.refused(err) {
			return nil, errDeposed
		}
		return nil, storage.Error(kind, last.GetName(), err)
	}
	return storage.NewEntry(kind, old.Key(), rev, raw, last), nil
}

// DeleteCollection deletes every object that opts selects and returns the deleted objects.
func (r *Registry) DeleteCollection(ctx context.Context, q *Request, list ListOptions, opts *metav1.DeleteOptions) (*List, error) {
	if err := r.authorizeAs(ctx, "deletecollection", q); err != nil {
		return nil, err
	}
	kind := q.Kind
	list.Namespace = q.Namespace
	found, err := r.list(ctx, kind, list)
	if err != nil {
		return nil, err
	}
	out := &List{Kind: kind, Revision: found.Revision}
	for _, e := range found.Entries {
		obj := e.Object()
		one := &Request{User: q.User, Verb: "delete", Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName(), Fence: q.Fence}
		one.passed = one.access() // the right to delete a collection includes its objects, as in Kubernetes
		deleted, _, err := r.Delete(ctx, one, opts)
		if apierrors.IsNotFound(err) {
			continue
		}
		if apierrors.IsServiceUnavailable(err) && len(out.Entries) > 0 { // which says that nothing was changed
			return nil, apierrors.NewTimeoutError(fmt.Sprintf("a majority of the masters went away after %d of %d objects were deleted: delete the rest again",
				len(out.Entries), len(found.Entries)), 0)
		}
		if err != nil {
			return nil, err
		}
		out.Entries = append(out.Entries, deleted)
		out.Revision = max(out.Revision, deleted.Revision())
	}
	return out, nil
}
