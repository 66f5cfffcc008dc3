package registry

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
	"minik8s/internal/store"
)

// write puts bytes into the store and leaves the decoded object where the watch will find it. obj
// becomes shared. The same transaction takes and gives up claims, and asks that nothing has changed on which admission
// relied; if something has, the error is an outrunError.
func (r *Registry) write(ctx context.Context, q *Request, key string, obj api.Object, raw []byte, change store.Change, claims []store.Change) (*Entry, error) {
	kind := q.Kind
	if r.Strategy(kind).Essential {
		ctx = store.Essential(ctx)
	}
	kc := r.cache.of(kind)
	// The cached object gets its revision from the watch, the caller's from the write's answer: two
	// goroutines, so two objects, which share all but the outermost struct.
	h := &handover{raw: raw, obj: shallow(obj)}
	kc.written.Store(key, h)
	rev, err := r.store.Write(ctx, append(append([]store.Change{change}, q.relied...), claims...)...)
	if err != nil {
		kc.written.CompareAndDelete(key, h)
		if refused := (*store.Refused)(nil); errors.As(err, &refused) && refused.Key != change.Key {
			return nil, outrunError{refused}
		}
		return nil, storeErr(kind, obj.GetName(), err)
	}
	// Forget it when the watch has passed by without using it (another write of the key came between).
	if r.cache.rev.Load() >= rev {
		kc.written.CompareAndDelete(key, h)
	}
	return newEntry(kind, key, rev, raw, obj), nil
}

// outrunError is a write that was refused for what is beside its object: since admission looked, another write has
// changed it or taken what this one claims.
type outrunError struct{ *store.Refused }

// outrun says whether a write is to be tried again, with admission first: it was outrun, and now the cache knows by
// what. If not, cause is what the client is told.
func (r *Registry) outrun(ctx context.Context, q *Request, err error, try int) (again bool, cause error) {
	var by outrunError
	if !errors.As(err, &by) {
		return false, err
	}
	if try >= maxRetries {
		return false, apierrors.NewConflict(q.Kind.GR(), q.New.GetName(), errors.New("what it depends on is changing all the time; please try again"))
	}
	if strings.HasPrefix(by.Key, claimsRoot) {
		q.claimed = by.Key
	}
	if err := r.cache.current(ctx); err != nil {
		return false, storeErr(q.Kind, q.New.GetName(), err)
	}
	return true, nil
}

// Claim is something that only one object of the cluster can have, like a node its range of pod addresses.
type Claim struct {
	// Name is unique among all claims: "podcidrs/10.1.0.0-24".
	Name string
	// Field and Value are where the object says so.
	Field, Value string
}

// claimsRoot is where claims are stored: each a key with the key of its holder, written and removed by the writes of
// the holder. No API group has such a name.
const claimsRoot = root + "_claims/"

// claims are the changes by which an object takes what it claims and its predecessor did not, and gives up what it
// claims no more. Either object may be nil.
func (s *Strategy) claims(kind *api.Kind, key string, old, obj api.Object) (changes []store.Change) {
	if s.Claims == nil {
		return nil
	}
	var have, want []Claim
	if old != nil {
		have = s.Claims(old)
	}
	if obj != nil {
		want = s.Claims(obj)
	}
	for _, c := range want {
		if !slices.Contains(have, c) {
			changes = append(changes, store.Create(claimsRoot+c.Name, []byte(prefixOf(kind)+key)))
		}
	}
	for _, c := range have {
		if !slices.Contains(want, c) {
			changes = append(changes, store.Drop(claimsRoot+c.Name))
		}
	}
	return changes
}

// admitClaims refuses what claims something that, as the store has said, another object holds.
func (r *Registry) admitClaims(ctx context.Context, q *Request) error {
	s := r.Strategy(q.Kind)
	if q.claimed == "" || s.Claims == nil || q.New == nil {
		return nil
	}
	for _, c := range s.Claims(q.New) {
		if claimsRoot+c.Name != q.claimed {
			continue
		}
		holder, err := r.store.Get(ctx, q.claimed)
		if errors.Is(err, store.ErrNotFound) {
			return nil // given up meanwhile
		}
		if err != nil {
			return storeErr(q.Kind, q.New.GetName(), err)
		}
		who := strings.TrimPrefix(string(holder.Value), root)
		return apierrors.NewInvalid(schema.GroupKind{Group: q.Kind.Group, Kind: q.Kind.Kind}, q.New.GetName(),
			field.ErrorList{{Type: field.ErrorTypeInvalid, Field: c.Field, BadValue: c.Value, Detail: "is already that of " + who}})
	}
	return nil
}

// claimAll writes the claims of objects that were stored before their kind had any. Of two that claim the same the
// first keeps it.
func (r *Registry) claimAll(ctx context.Context, log *slog.Logger) {
	var held map[string]bool
	for kind, s := range *r.strategies.Load() {
		if s.Claims == nil {
			continue
		}
		entries, _ := r.cache.snapshot(r.cache.of(kind), "", "")
		for _, e := range entries {
			if held == nil {
				page, err := r.store.List(ctx, claimsRoot, "", 0, 0)
				if err != nil {
					log.Warn("what objects claim could not be read", "err", err)
					return
				}
				held = map[string]bool{}
				for _, kv := range page.KVs {
					held[kv.Key] = true
				}
			}
			for _, c := range s.claims(kind, e.key, nil, e.Object()) {
				if held[c.Key] {
					continue
				}
				if _, err := r.store.Write(store.Essential(ctx), c); err != nil {
					log.Warn("an object does not get what it claims", "kind", kind.Kind, "object", e.key, "err", err)
				}
			}
		}
	}
}
