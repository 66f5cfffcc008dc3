package registry

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api"
	"minik8s/internal/registry/storage"
	"minik8s/internal/store"
)

// write puts an object, which becomes shared, and its bytes into the store. The same transaction asks that nothing has
// changed on which admission relied; if something has, the error is an outrunError.
func (r *Registry) write(ctx context.Context, q *Request, key string, obj api.Object, raw []byte, change store.Change) (*Entry, error) {
	kind := q.Kind
	if r.Strategy(kind).Essential {
		ctx = store.Essential(ctx)
	}
	e, err := r.cache.Of(kind).Write(ctx, key, obj, raw, append([]store.Change{change}, q.relied...)...)
	if refused := (*store.Refused)(nil); errors.As(err, &refused) && refused.Key != change.Key {
		return nil, outrunError{refused}
	}
	return e, storage.Error(kind, obj.GetName(), err)
}

// outrunError is a write that was refused because another one was faster: it has changed what admission relied on.
type outrunError struct{ *store.Refused }

// maxOutrun bounds how often a write is tried that others outrun: of any number that start together one wins each
// time.
const maxOutrun = 1000

// outrun says whether a write is to be tried again, with admission first: it was outrun, and now the cache knows by
// what. If not, cause is what the client is told.
func (r *Registry) outrun(ctx context.Context, q *Request, err error, try int) (again bool, cause error) {
	var by outrunError
	if !errors.As(err, &by) {
		return false, err
	}
	if try >= maxOutrun {
		return false, apierrors.NewConflict(q.Kind.GR(), q.New.GetName(), errors.New("what it depends on is changing all the time; please try again"))
	}
	if err := r.cache.Current(ctx); err != nil {
		return false, storage.Error(q.Kind, q.New.GetName(), err)
	}
	return true, nil
}

// exclusiveRoot is where the groups of Strategy.Exclusive have a key each, without a value: every write of the group
// changes it. No API group has such a name.
const exclusiveRoot = storage.Root + "_exclusive/"

// admitExclusive has admission see every earlier write of the group, and the write ask that none came since.
func (r *Registry) admitExclusive(ctx context.Context, q *Request) error {
	s := r.Strategy(q.Kind)
	if s.Exclusive == nil || q.Sub != "" || q.New == nil {
		return nil
	}
	group := s.Exclusive(q.New, q.Old)
	if group == "" {
		return nil
	}
	key := exclusiveRoot + group
	switch kv, err := r.store.Get(ctx, key); {
	case errors.Is(err, store.ErrNotFound):
		q.relied = append(q.relied, store.Create(key, nil))
	case err != nil:
		return storage.Error(q.Kind, q.New.GetName(), err)
	default:
		if err := r.cache.Reach(ctx, kv.Modified); err != nil {
			return storage.Error(q.Kind, q.New.GetName(), err)
		}
		q.relied = append(q.relied, store.Update(key, nil, kv.Modified))
	}
	return nil
}
