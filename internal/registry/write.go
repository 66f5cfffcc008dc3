package registry

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api"
	"minik8s/internal/registry/storage"
	"minik8s/internal/store"
)

// write stores an object, which becomes shared, and its bytes. The same transaction checks that nothing has changed
// that admission relied on; if something has, the error is an outrunError. It checks the request's fence, too.
func (r *Registry) write(ctx context.Context, q *Request, key string, obj api.Object, raw []byte, change store.Change) (*Entry, error) {
	kind := q.Kind
	if r.Strategy(kind).Essential {
		ctx = store.Essential(ctx)
	}
	changes, err := q.Fence.before(change, q.relied...)
	if err != nil {
		return nil, err
	}
	e, err := r.cache.Of(kind).Write(ctx, key, obj, raw, changes...)
	if q.Fence.refused(err) {
		return nil, errDeposed
	}
	if refused := (*store.Refused)(nil); errors.As(err, &refused) && refused.Key != change.Key {
		return nil, outrunError{refused}
	}
	if err == nil && q.turn != nil {
		q.turn.wrote = e.Revision()
	}
	return e, storage.Error(kind, obj.GetName(), err)
}

// outrunError means that a write was refused because another write has changed what admission relied on.
type outrunError struct{ *store.Refused }

// maxOutrun bounds how often an outrun write is retried. Of any number of writes that start together, one succeeds in
// each round.
const maxOutrun = 1000

// outrun reports whether a write should be retried from admission on: it was outrun, and the cache now has the change
// that outran it. If not, cause is the error for the client.
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

// exclusiveRoot is the prefix of one key, without a value, for each group of Strategy.Exclusive. Every write of the
// group changes its key. No API group has such a name.
const exclusiveRoot = storage.Root + "_exclusive/"

// admitExclusive waits for the request's turn, makes admission see every earlier write of the group, and makes the write fail if
// one of another master has come since.
func (r *Registry) admitExclusive(ctx context.Context, q *Request) error {
	s := r.Strategy(q.Kind)
	if s.Exclusive == nil || q.Sub != "" || q.New == nil {
		return nil
	}
	groups := s.Exclusive(q.New, q.Old)
	q.endTurn()
	turn, err := r.turns.take(ctx, groups)
	if err != nil {
		return storage.Error(q.Kind, q.New.GetName(), err)
	}
	q.turn = turn
	for _, group := range turn.groups { // each once
		key, revision := exclusiveRoot+group, turn.revision(group)
		if revision == 0 {
			kv, err := r.store.Get(ctx, key)
			if errors.Is(err, store.ErrNotFound) {
				q.relied = append(q.relied, store.Create(key, nil))
				continue
			}
			if err != nil {
				return storage.Error(q.Kind, q.New.GetName(), err)
			}
			revision = kv.Modified
		}
		if err := r.cache.Reach(ctx, revision); err != nil {
			return storage.Error(q.Kind, q.New.GetName(), err)
		}
		q.relied = append(q.relied, store.Update(key, nil, revision))
	}
	return nil
}
