package registry

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/registry/authorization"
	"minik8s/internal/registry/storage"
	"minik8s/internal/store"
)

// admission is what a request goes through once it is authorised and its object is complete: each step may
// complete New, or refuse the request because of other objects. The order counts.
var admission = []func(r *Registry, ctx context.Context, q *Request) error{
	(*Registry).admitNode,
	(*Registry).admitNamespace,
	(*Registry).admitExclusive,
	(*Registry).admitKind,
}

func (r *Registry) admit(ctx context.Context, q *Request) error {
	q.relied = nil
	for _, step := range admission {
		if err := step(r, ctx, q); err != nil {
			return err
		}
	}
	return nil
}

// admitNode holds a kubelet to what is its own, now that the object is known.
func (r *Registry) admitNode(_ context.Context, q *Request) error {
	node, ok := authorization.NodeOf(q.User)
	if !ok {
		return nil
	}
	switch q.Kind {
	case api.Nodes, api.Leases:
		if q.New != nil && q.New.GetName() != node {
			return authorization.Forbidden(q.attributes(), "a node may only use its own "+q.Kind.Kind)
		}
	case api.Pods:
		if pod, ok := q.Old.(*corev1.Pod); q.Old != nil && (!ok || pod.Spec.NodeName != node) {
			return authorization.Forbidden(q.attributes(), authorization.NotHere)
		}
	}
	return nil
}

// admitNamespace refuses what would be created in a namespace that is not there or is going. The write asks that it
// still stands as it was seen here: nothing is created in a namespace that is being emptied.
func (r *Registry) admitNamespace(ctx context.Context, q *Request) error {
	if q.Verb != "create" || q.Sub != "" || !q.Kind.Namespaced {
		return nil
	}
	name := q.New.GetNamespace()
	kc := r.cache.Of(api.Namespaces)
	e := kc.Get(name)
	if e == nil { // it may have been made a moment ago
		if err := r.cache.Current(ctx); err != nil {
			return storage.Error(api.Namespaces, name, err)
		}
		e = kc.Get(name)
	}
	if e == nil {
		return apierrors.NewNotFound(api.Namespaces.GR(), name)
	}
	if e.Object().(*corev1.Namespace).Status.Phase == corev1.NamespaceTerminating {
		err := apierrors.NewForbidden(q.Kind.GR(), q.New.GetName(),
			errors.New("unable to create new content in namespace "+name+" because it is being terminated"))
		err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
			Type: corev1.NamespaceTerminatingCause, Message: "namespace " + name + " is being terminated", Field: "metadata.namespace"})
		return err
	}
	q.relied = append(q.relied, store.Unchanged(storage.PrefixOf(api.Namespaces)+name, e.Revision()))
	return nil
}

// admitKind asks what is the kind's own. What it misses on a create may have been made a moment ago, so before
// it refuses, the cache has to be as new as the store.
func (r *Registry) admitKind(ctx context.Context, q *Request) error {
	s := r.Strategy(q.Kind)
	others := Lister{r.cache}
	var err error
	switch {
	case q.Verb == "create" && q.Sub == "" && s.Admit != nil:
		if s.Admit(q.New, others) == nil {
			return nil
		}
		if err := r.cache.Current(ctx); err != nil {
			return storage.Error(q.Kind, q.New.GetName(), err)
		}
		err = s.Admit(q.New, others)
	case (q.Verb == "update" || q.Verb == "patch") && q.Sub == "" && s.AdmitUpdate != nil:
		err = s.AdmitUpdate(q.New, q.Old, others)
	case q.Verb == "delete" && s.MayDelete != nil:
		err = s.MayDelete(q.Old)
	}
	if err != nil {
		obj := q.New
		if obj == nil {
			obj = q.Old
		}
		return apierrors.NewForbidden(q.Kind.GR(), obj.GetName(), err)
	}
	return nil
}

// Lister reads the other objects, as far as the cache knows them. They are shared.
type Lister struct{ cache *storage.Cache }

// Get is an object; nil if there is none.
func (l Lister) Get(kind *api.Kind, namespace, name string) api.Object {
	if e := l.cache.Of(kind).Get(storage.KeyOf(kind, namespace, name)); e != nil {
		return e.Object()
	}
	return nil
}

// List is every object of a kind that lives in no namespace.
func (l Lister) List(kind *api.Kind) []api.Object {
	entries, _ := l.cache.Of(kind).Snapshot("", "")
	all := make([]api.Object, len(entries))
	for i, e := range entries {
		all[i] = e.Object()
	}
	return all
}
