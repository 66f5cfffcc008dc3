package registry

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
	"minik8s/internal/clock"
	"minik8s/internal/registry/apply"
	"minik8s/internal/registry/authorization"
	"minik8s/internal/registry/patch"
	"minik8s/internal/registry/storage"
	"minik8s/internal/store"
)

// Registry holds the objects of the cluster and what may be done with them.
type Registry struct {
	store      store.Store
	cache      *storage.Cache
	kinds      *api.Table
	strategies atomic.Pointer[map[*api.Kind]*Strategy]
	authorizer *authorization.Authorizer
	fields     apply.Fields
	turns      turns
	log        *slog.Logger
	now        func() time.Time
}

// Needed is a right that a user must have for what an object asks for: see Strategy.Needs.
type Needed struct {
	Verb      string
	Kind      *api.Kind // nil: there is none of that name, and the object is refused
	Sub       string    // a subresource; empty: the object itself
	Namespace string    // empty: all
	For       string    // the field that asks for it
}

// Strategy is what is a kind's own in the common flow. Every func may be nil.
type Strategy struct {
	// Default fills in what the manifest left out.
	Default func(obj api.Object)
	// PrepareCreate and PrepareUpdate set what only the server may set.
	PrepareCreate func(obj api.Object)
	PrepareUpdate func(obj, old api.Object)
	// Author notes in an object who writes it. old is nil for a new object.
	Author func(obj, old api.Object, by User)
	// Validate names every mistake of an object; ValidateCreate also those that only a new one can have, ValidateUpdate
	// those of the step from old.
	Validate       func(obj api.Object) field.ErrorList
	ValidateCreate func(obj api.Object) field.ErrorList
	ValidateUpdate func(obj, old api.Object) field.ErrorList
	// ValidateStatus is for writes of the status.
	ValidateStatus func(obj, old api.Object) field.ErrorList
	// Warnings go to the client as Warning headers: fields that are accepted and not served, objects that do not exist.
	Warnings func(obj api.Object, others Lister) []string
	// Split takes out of a new or changed object what a second object is to keep for it, and clears the fields that api.Kind
	// names as WriteOnly. It returns nil if there is nothing to keep. No error may have what was taken out. old is nil for a
	// new object.
	Split func(obj, old api.Object) (*Kept, field.ErrorList)
	// Preview completes the answer to a dry run by what is never stored. obj is the answer's own.
	Preview func(obj api.Object, others Lister)
	// CopyStatus makes dst's status that of src.
	CopyStatus func(dst, src api.Object)
	// BornWithStatus keeps the status that a new object brings along; others begin with none.
	BornWithStatus bool
	// SpecChanged says whether generation goes up; nil: the kind has no generation.
	SpecChanged func(obj, old api.Object) bool
	// Fields are what field selectors can ask for, beside metadata.name and metadata.namespace, and how each is read.
	Fields map[string]func(obj api.Object) string
	// Grace is the grace period in seconds of a deletion; nil func: the object goes at once.
	Grace func(obj api.Object, asked *int64) int64
	// Restrict says why a user may not make this change, now that the objects are known; empty: the user may. The rules
	// of authorisation see only kind and name. old is nil for a new object, obj for a deletion.
	Restrict func(u User, obj, old api.Object) string
	// RestrictAmong is Restrict where the answer depends on other objects. It may be asked again after a refusal, when more of them are
	// known.
	RestrictAmong func(u User, obj, old api.Object, others Lister) string
	// Needs lists what else a user must be allowed to do who makes this object, or changes it so: what it has done for him by a part
	// of the daemon that may do more than he. kinds finds kinds that are named in it. old is nil for a new object.
	Needs func(obj, old api.Object, kinds *api.Table) []Needed
	// Admit completes a new object from the other objects, or refuses it because of them. It may be asked again
	// after a refusal, when more of them are known. AdmitUpdate may refuse what replaces an object.
	Admit       func(obj api.Object, others Lister) error
	AdmitUpdate func(obj, old api.Object, others Lister) error
	// Exclusive names a group of writes of which this is one, because it takes what must be nobody else's: a range of
	// addresses, to be the default. Between what Admit and AdmitUpdate see of the others and the write no other
	// write of the group comes. None: it takes nothing. old is nil for a new object.
	Exclusive func(obj, old api.Object) []string
	// Holds names what an object has to itself, such as its addresses, so that Lister.Holder finds the object by it.
	Holds func(obj api.Object) []string
	// Essential objects are written also when the store is nearly full: without heartbeats and Leases nothing would be
	// deleted.
	Essential bool
	// Orphans leaves an object's dependents behind when its deletion does not say what shall become of them, for
	// the sake of clients from before there was a choice; false: they go too. OrphanWarning, if there is one, is
	// what a client that did not say is told.
	Orphans       bool
	OrphanWarning string
	// AdmitContent is of the kind that others lie in, Namespaces: it may refuse a new object inside of scope.
	AdmitContent func(scope api.Object, kind *api.Kind, obj api.Object) error
	// MayDelete refuses deletions; nil: everything may go.
	MayDelete func(obj api.Object) error
	// ReturnDeleted has a deletion answered with the object as it was, not with a Status that it is gone.
	ReturnDeleted bool
	// Subresources are what can be done below an object, other than to its status: "finalize". What the table of kinds
	// names and is not here is served by apiserver: streams from a container.
	Subresources map[string]Subresource
	// Answer fills in the status of an object of a kind that is a question.
	Answer func(ctx context.Context, o Objects, q *Request, obj api.Object) error
	// Empty says that a deleted object may go, beyond having no finalizers.
	Empty func(obj api.Object) bool
	// Dialect turns a manifest of a seed system into the canonical one; see package dialect. A view has its own.
	Dialect func(doc map[string]any) (notes []string, err error)
}

// New is a registry over a store, of the kinds that are compiled in; rows is what is their own (package strategy). Nothing can be read before Run is ready.
func New(s store.Store, rows map[*api.Kind]*Strategy, log *slog.Logger) *Registry {
	patch.LimitCopies()
	rows = maps.Clone(rows)
	for _, k := range api.Builtin() {
		if rows[k] == nil {
			rows[k] = &Strategy{}
		}
	}
	kinds := api.NewTable(api.Builtin()...)
	r := &Registry{store: s, kinds: kinds, cache: storage.New(s, kinds.Stored(), storage.BookmarkEvery), log: log, now: clock.Now}
	for k, row := range rows {
		if row.Holds != nil {
			r.cache.Of(k).Index(row.Holds)
		}
	}
	r.strategies.Store(&rows)
	r.authorizer = authorization.New(r.kinds, cached{r.cache})
	return r
}

// Kinds is what the registry serves. Kinds come by AddKind.
func (r *Registry) Kinds() *api.Table { return r.kinds }

// AddKind has another kind served from now on: its objects are read from the store and can be asked for when it
// returns. It is for a registry that runs, and to be called by one goroutine at a time.
func (r *Registry) AddKind(ctx context.Context, kind *api.Kind, s *Strategy) error {
	if err := r.kinds.Free(kind); err != nil {
		return err
	}
	r.setStrategy(kind, s)
	if kind.Stored() {
		if err := r.cache.Add(ctx, kind, s.Holds); err != nil {
			r.cache.Drop(kind)
			r.setStrategy(kind, nil)
			return err
		}
	}
	return r.kinds.Add(kind) // last: who finds it there can use it
}

// setStrategy replaces the row of a kind; nil: it has none.
func (r *Registry) setStrategy(kind *api.Kind, s *Strategy) {
	rows := maps.Clone(*r.strategies.Load())
	if rows[kind] = s; s == nil {
		delete(rows, kind)
	}
	r.strategies.Store(&rows)
}

// Run follows the store until ctx ends; ready is called when reads can be served.
func (r *Registry) Run(ctx context.Context, ready func()) error {
	return r.cache.Run(ctx, r.log, ready)
}

// Strategy is what is a kind's own; nil if it is not served.
func (r *Registry) Strategy(k *api.Kind) *Strategy { return (*r.strategies.Load())[k] }

// Revision is that of the newest change in the cache.
func (r *Registry) Revision() int64 { return r.cache.Revision() }

// Count is how many objects of a kind there are.
func (r *Registry) Count(k *api.Kind) int { return r.cache.Of(k).Len() }

// CheckShared says which of the shared objects somebody has changed, although nobody may. Tests call it
// when all is done; registrytest does for every test.
func (r *Registry) CheckShared() error { return r.cache.CheckShared() }

// Conflictf returns the error for a write that another has made impossible (409).
func Conflictf(kind *api.Kind, name, format string, args ...any) error {
	return apierrors.NewConflict(kind.GR(), name, fmt.Errorf(format, args...))
}

// Invalid returns the error for an object with these mistakes (422); nil if there are none.
func Invalid(k *api.Kind, name string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: k.Group, Kind: k.Kind}, name, errs)
}
