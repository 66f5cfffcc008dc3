package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
	"minik8s/internal/registry/storage"
	"minik8s/internal/store"
)

// Kept is a second object, of the same namespace, that keeps a part of an object which the object itself must not show,
// such as a password. It belongs to the object: it goes with it. Both are written in one transaction.
type Kept struct {
	Kind *api.Kind
	Name string
	// Fill puts the part into the second object, which is empty or there already.
	Fill func(obj api.Object)
}

// split takes out of an object that is written what it must not show: the fields that cannot be read, which Strategy.Split
// gives to a second object, and what kubectl apply and ctl apply note of them in their annotation.
func (r *Registry) split(q *Request, s *Strategy, obj, old api.Object, opts WriteOptions) field.ErrorList {
	q.kept, q.keeps = nil, false
	blank(q.Kind, obj)
	if s.Split == nil || q.Sub != "" {
		return nil
	}
	kept, errs := s.Split(obj, old)
	if q.kept = kept; kept != nil && len(errs) == 0 {
		var paths []string
		for _, p := range q.Kind.WriteOnly {
			paths = append(paths, strings.Join(p, "."))
		}
		opts.warn([]string{fmt.Sprintf("%s: moved into %s %s/%s", strings.Join(paths, ", "), kept.Kind.Singular, obj.GetNamespace(), kept.Name)})
	}
	return errs
}

// blank removes the fields that cannot be read from the manifest that was last applied. Names are compared without regard
// to case, as a manifest may have mistakes.
func blank(kind *api.Kind, obj api.Object) {
	if len(kind.WriteOnly) == 0 {
		return
	}
	manifest, ok := obj.GetAnnotations()[corev1.LastAppliedConfigAnnotation]
	if !ok {
		return
	}
	notes := maps.Clone(obj.GetAnnotations())
	var doc map[string]any
	dec := json.NewDecoder(strings.NewReader(manifest))
	dec.UseNumber()
	if dec.Decode(&doc) != nil { // nobody's manifest: it cannot be told what is in it
		delete(notes, corev1.LastAppliedConfigAnnotation)
		obj.SetAnnotations(notes)
		return
	}
	found := false
	for _, path := range kind.WriteOnly {
		found = removeField(doc, path) || found
	}
	if !found {
		return
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if enc.Encode(doc) != nil { // it was just decoded
		return
	}
	notes[corev1.LastAppliedConfigAnnotation] = out.String()
	obj.SetAnnotations(notes)
}

// removeField removes a field from a document, and reports whether it was there.
func removeField(doc map[string]any, path []string) bool {
	found := false
	for key, below := range doc {
		if !strings.EqualFold(key, path[0]) {
			continue
		}
		if len(path) == 1 {
			delete(doc, key)
			found = true
		} else if object, ok := below.(map[string]any); ok {
			found = removeField(object, path[1:]) || found
		}
	}
	return found
}

// admitKept adds the second object to what the request writes. What is in its way may have gone a moment ago, so before it
// refuses, it waits until the cache is as new as the store.
func (r *Registry) admitKept(ctx context.Context, q *Request) error {
	q.keeps = false
	if q.kept == nil || r.keep(q) == nil {
		return nil
	}
	if err := r.cache.Current(ctx); err != nil {
		return storage.Error(q.Kind, q.New.GetName(), err)
	}
	return r.keep(q)
}

// keep creates the second object, or changes the one that belongs to the object, or to one of the same name before it. It
// leaves another of its name alone, and refuses the request (409).
func (r *Registry) keep(q *Request) error {
	k, s := q.kept, r.Strategy(q.kept.Kind)
	key := storage.KeyOf(k.Kind, q.New.GetNamespace(), k.Name)
	e := r.cache.Of(k.Kind).Get(key)
	obj := k.Kind.New()
	var errs field.ErrorList
	switch {
	case e == nil:
		obj.SetName(k.Name)
		obj.SetNamespace(q.New.GetNamespace())
		obj.SetUID(uuid.NewUUID())
		obj.SetCreationTimestamp(metav1.NewTime(r.now().UTC().Truncate(1e9)))
	case !belongs(e.Object(), q):
		return Conflictf(q.Kind, q.New.GetName(), "a part of it is to be kept in %s %s/%s, which is somebody else's: rename that one, or delete it",
			k.Kind.Singular, q.New.GetNamespace(), k.Name)
	case e.Object().GetDeletionTimestamp() != nil:
		return Conflictf(q.Kind, q.New.GetName(), "a part of it is to be kept in %s %s/%s, which is being deleted: try again", k.Kind.Singular, q.New.GetNamespace(), k.Name)
	default:
		obj = e.Object().DeepCopyObject().(api.Object)
	}
	k.Fill(obj)
	obj.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(q.New, q.Kind.GVK())})
	if e == nil {
		errs = r.mistakes(k.Kind, s, obj)
	} else if s.ValidateUpdate != nil {
		errs = s.ValidateUpdate(obj, e.Object())
	}
	if err := Invalid(k.Kind, k.Name, errs); err != nil {
		return err
	}
	raw, err := storage.Encode(k.Kind, obj)
	switch {
	case err != nil:
		return apierrors.NewInternalError(fmt.Errorf("%s %s/%s cannot be stored", k.Kind.Singular, q.New.GetNamespace(), k.Name)) // err may have what is kept
	case e == nil:
		q.keeps, q.relied = true, append(q.relied, store.Create(storage.PrefixOf(k.Kind)+key, raw))
	case !e.Equal(raw):
		q.keeps, q.relied = true, append(q.relied, store.Update(storage.PrefixOf(k.Kind)+key, raw, e.Revision()))
	default:
		q.relied = append(q.relied, store.Unchanged(storage.PrefixOf(k.Kind)+key, e.Revision()))
	}
	return nil
}

// belongs reports whether a second object is that of the request's object, or of one of its name before it.
func belongs(second api.Object, q *Request) bool {
	return slices.ContainsFunc(second.GetOwnerReferences(), func(o metav1.OwnerReference) bool {
		return o.Controller != nil && *o.Controller && o.APIVersion == q.Kind.APIVersion() && o.Kind == q.Kind.Kind && o.Name == q.New.GetName()
	})
}
