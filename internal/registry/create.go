package registry

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
	"minik8s/internal/api/validation"
	"minik8s/internal/registry/decode"
	"minik8s/internal/registry/storage"
	"minik8s/internal/store"
)

// WriteOptions apply to every write.
type WriteOptions struct {
	DryRun bool
	// Warn, which may be nil, is called for each part of an object that is accepted but has no effect.
	Warn func(string)
	// Manager is the field manager recorded for this write; see package apply. Only an apply requires one.
	Manager string

	applied bool // an apply has already set the object's managedFields
}

func (o WriteOptions) warn(msgs []string) {
	if o.Warn != nil {
		for _, m := range msgs {
			o.Warn(m)
		}
	}
}

// generateTries is how many random suffixes are tried for a generateName before the create fails.
const generateTries = 8

// Create stores a new object. It takes ownership of obj: the caller must not use it afterwards. The errors are 400,
// 403, 404 (no such namespace), 409 (the object exists), 422 (it is not valid), and those of storage.Error.
func (r *Registry) Create(ctx context.Context, q *Request, obj api.Object, opts WriteOptions) (*Entry, error) {
	if err := r.authorizeAs(ctx, "create", q); err != nil {
		return nil, err
	}
	kind := q.Kind
	obj, err := r.shapeOf(q).stored(obj, nil)
	if err != nil {
		return nil, err
	}
	if err := place(kind, q.Namespace, obj); err != nil {
		return nil, err
	}
	if obj.GetResourceVersion() != "" {
		return nil, apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	s := r.Strategy(kind)
	if !opts.applied {
		obj.SetManagedFields(nil)
	}
	r.prepareCreate(q, s, obj)
	generated := obj.GetName() == "" && obj.GetGenerateName() != ""
	for try := 1; ; try++ {
		if generated {
			obj.SetName(api.GenerateName(obj.GetGenerateName()))
			if s.Default != nil { // some defaults depend on the name
				s.Default(obj)
			}
		}
		q.New = obj
		e, err := r.create(ctx, q, s, obj, opts)
		if generated && try < generateTries && apierrors.IsAlreadyExists(err) {
			continue
		}
		return e, err
	}
}

func (r *Registry) create(ctx context.Context, q *Request, s *Strategy, obj api.Object, opts WriteOptions) (*Entry, error) {
	kind := q.Kind
	if s.Split != nil { // another try, with another name, begins from what the client sent
		obj = storage.Shallow(obj)
		q.New = obj
	}
	errs := append(r.split(q, s, obj, nil, opts), r.mistakes(kind, s, obj)...)
	if err := Invalid(kind, obj.GetName(), errs); err != nil {
		return nil, err
	}
	key, asked := storage.KeyOf(kind, obj.GetNamespace(), obj.GetName()), obj
	defer q.endTurn()
	for try := 0; ; try++ {
		if s.Admit != nil { // each try completes what the client asked for, not what the last try made of it
			obj = storage.Shallow(asked)
			q.New = obj
		}
		if err := r.admit(ctx, q); err != nil {
			return nil, err
		}
		if s.Warnings != nil && try == 0 {
			opts.warn(s.Warnings(obj, Lister{r.cache}))
		}
		if opts.DryRun {
			if err := r.preview(ctx, kind, obj); err != nil {
				return nil, err
			}
		}
		raw, err := storage.Encode(kind, obj)
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		if opts.DryRun {
			if r.cache.Of(kind).Get(key) != nil {
				return nil, apierrors.NewAlreadyExists(kind.GR(), obj.GetName())
			}
			return storage.NewEntry(kind, key, 0, raw, nil), nil
		}
		e, err := r.write(ctx, q, key, obj, raw, store.Create(storage.PrefixOf(kind)+key, raw))
		if again, cause := r.outrun(ctx, q, err, try); !again {
			return e, cause
		}
	}
}

// preview completes the answer to a dry run. No write of it will find what the cache has not seen yet, so it waits for that.
func (r *Registry) preview(ctx context.Context, kind *api.Kind, obj api.Object) error {
	if err := r.cache.Current(ctx); err != nil {
		return storage.Error(kind, obj.GetName(), err)
	}
	if s := r.Strategy(kind); s.Preview != nil {
		s.Preview(obj, Lister{r.cache})
	}
	return nil
}

// mistakes returns every validation error of a new object.
func (r *Registry) mistakes(kind *api.Kind, s *Strategy, obj api.Object) field.ErrorList {
	errs := validation.ObjectMeta(obj, kind.Namespaced)
	if s.Validate != nil {
		errs = append(errs, s.Validate(obj)...)
	}
	if s.ValidateCreate != nil {
		errs = append(errs, s.ValidateCreate(obj)...)
	}
	return errs
}

// place checks name and namespace against the request's path.
func place(kind *api.Kind, namespace string, obj api.Object) error {
	if !kind.Namespaced {
		obj.SetNamespace("")
		return nil
	}
	switch obj.GetNamespace() {
	case "":
		if namespace == "" {
			namespace = metav1.NamespaceDefault
		}
		obj.SetNamespace(namespace)
	case namespace:
	default:
		if namespace != "" {
			return apierrors.NewBadRequest("the namespace of the provided object (" + obj.GetNamespace() +
				") does not match the namespace sent on the request (" + namespace + ")")
		}
	}
	return nil
}

// prepareCreate sets the fields of a new object that the server assigns.
func (r *Registry) prepareCreate(q *Request, s *Strategy, obj api.Object) {
	obj.SetUID(uuid.NewUUID())
	obj.SetCreationTimestamp(metav1.NewTime(r.now().UTC().Truncate(1e9)))
	obj.SetDeletionTimestamp(nil)
	obj.SetDeletionGracePeriodSeconds(nil)
	obj.SetSelfLink("")
	obj.SetGeneration(0)
	if s.SpecChanged != nil {
		obj.SetGeneration(1)
	}
	if s.CopyStatus != nil && q.Kind.HasStatus() && !s.BornWithStatus {
		s.CopyStatus(obj, q.Kind.New())
	}
	if s.Author != nil {
		s.Author(obj, nil, q.User)
	}
	if s.PrepareCreate != nil {
		s.PrepareCreate(obj)
	}
	if s.Default != nil {
		s.Default(obj)
	}
}

// Refuse turns a strict decoding error into the 400 for the client, with every other mistake of the object added.
func (r *Registry) Refuse(q *Request, obj api.Object, strict *decode.StrictError) error {
	msg := strict.Error()
	kind, s := q.Kind, r.Strategy(q.Kind)
	shape := r.shapeOf(q)
	if shape.form != nil {
		return apierrors.NewBadRequest(msg)
	}
	obj, err := shape.stored(obj, nil)
	if err == nil {
		err = place(kind, q.Namespace, obj)
	}
	if err == nil {
		r.prepareCreate(q, s, obj)
		if errs := r.mistakes(kind, s, obj); len(errs) > 0 {
			msg += "; and " + errs.ToAggregate().Error()
		}
	}
	return apierrors.NewBadRequest(msg)
}
