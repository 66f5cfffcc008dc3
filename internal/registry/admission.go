package registry

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api"
	"minik8s/internal/registry/authorization"
	"minik8s/internal/registry/storage"
	"minik8s/internal/store"
)

// admission lists the steps that a request passes once it is authorised and its object is complete. Each step may
// complete New, or refuse the request because of other objects. The order matters.
var admission = []func(r *Registry, ctx context.Context, q *Request) error{
	(*Registry).admitUser,
	(*Registry).admitNamespace,
	(*Registry).admitExclusive,
	(*Registry).admitKind,
	(*Registry).admitKept,
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

// admitUser refuses what the kind does not let this user do.
func (r *Registry) admitUser(ctx context.Context, q *Request) error {
	s := r.Strategy(q.Kind)
	if s.Restrict != nil {
		if reason := s.Restrict(q.User, q.New, q.Old); reason != "" {
			return authorization.Forbidden(q.attributes(), reason)
		}
	}
	if err := r.admitNeeds(ctx, q, s); err != nil {
		return err
	}
	if s.RestrictAmong == nil || s.RestrictAmong(q.User, q.New, q.Old, Lister{r.cache}) == "" {
		return nil
	}
	if err := r.cache.Current(ctx); err != nil {
		return storage.Error(q.Kind, q.attributes().Name, err)
	}
	if reason := s.RestrictAmong(q.User, q.New, q.Old, Lister{r.cache}); reason != "" {
		return authorization.Forbidden(q.attributes(), reason)
	}
	return nil
}

// admitNeeds refuses what a part would do for a user that the user may not do.
func (r *Registry) admitNeeds(ctx context.Context, q *Request, s *Strategy) error {
	if s.Needs == nil || q.New == nil || q.Sub != "" {
		return nil
	}
	for _, n := range s.Needs(q.New, q.Old, r.kinds) {
		if n.Kind == nil {
			return apierrors.NewBadRequest(n.For + ": there is no such kind here")
		}
		err := r.authorizer.Authorize(ctx, authorization.Attributes{User: q.User, Verb: n.Verb, Kind: n.Kind, Sub: n.Sub, Namespace: n.Namespace})
		if apierrors.IsForbidden(err) {
			where := "all namespaces"
			if n.Namespace != "" {
				where = "namespace " + n.Namespace
			}
			if !n.Kind.Namespaced {
				where = "the cluster"
			}
			what := n.Kind.Plural
			if n.Sub != "" {
				what += "/" + n.Sub
			}
			return authorization.Forbidden(q.attributes(), fmt.Sprintf("%s needs somebody who may %s %s in %s", n.For, n.Verb, what, where))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// admitNamespace refuses to create an object in a namespace that does not exist or takes no more. The write requires
// that the namespace is unchanged since this check, so nothing is created while it is being emptied.
func (r *Registry) admitNamespace(ctx context.Context, q *Request) error {
	if q.Verb != "create" || q.Sub != "" || !q.Kind.Namespaced {
		return nil
	}
	name := q.New.GetNamespace()
	e, err := cached{r.cache}.known(ctx, api.Namespaces, "", name)
	if err != nil {
		return err
	}
	if e == nil {
		return apierrors.NewNotFound(api.Namespaces.GR(), name)
	}
	if admit := r.Strategy(api.Namespaces).AdmitContent; admit != nil {
		if err := admit(e.Object(), q.Kind, q.New); err != nil {
			return err
		}
	}
	q.relied = append(q.relied, store.Unchanged(storage.PrefixOf(api.Namespaces)+name, e.Revision()))
	return nil
}

// admitKind runs the kind's own admission. On a create, an object that seems missing may have been created a moment
// ago, so before it refuses, it waits until the cache is as new as the store.
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
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return err // the kind has said more than that it is forbidden
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

// Lister reads other objects from the cache, which may lag behind the store. The objects are shared.
type Lister struct{ cache *storage.Cache }

// Get returns an object; nil if it does not exist.
func (l Lister) Get(kind *api.Kind, namespace, name string) api.Object {
	if e := l.cache.Of(kind).Get(storage.KeyOf(kind, namespace, name)); e != nil {
		return e.Object()
	}
	return nil
}

// Holder returns the object of a kind that has something to itself, as its Strategy.Holds names it; nil if it is free.
func (l Lister) Holder(kind *api.Kind, name string) api.Object {
	if e := l.cache.Of(kind).Holder(name); e != nil {
		return e.Object()
	}
	return nil
}

// List returns every object of a kind.
func (l Lister) List(kind *api.Kind) []api.Object {
	entries, _ := l.cache.Of(kind).Snapshot("", "")
	all := make([]api.Object, len(entries))
	for i, e := range entries {
		all[i] = e.Object()
	}
	return all
}
