package registry

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
	"minik8s/internal/api/validation"
	"minik8s/internal/store"
)

// WriteOptions goes with every write.
type WriteOptions struct {
	DryRun bool
	// Warn, which may be nil, is told what was accepted but has no effect.
	Warn func(string)
}

func (o WriteOptions) warn(msgs []string) {
	if o.Warn != nil {
		for _, m := range msgs {
			o.Warn(m)
		}
	}
}

// generateTries is how many random suffixes are tried before a generateName gives up.
const generateTries = 8

// Create stores a new object. It takes obj over: the caller must not use it afterwards.
func (r *Registry) Create(ctx context.Context, user User, kind *api.Kind, namespace string, obj api.Object, opts WriteOptions) (*Entry, error) {
	if err := r.authorize(user, Access{Verb: "create", Kind: kind, Namespace: namespace, Name: obj.GetName()}); err != nil {
		return nil, err
	}
	if err := place(kind, namespace, obj); err != nil {
		return nil, err
	}
	if obj.GetResourceVersion() != "" {
		return nil, apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	s := r.strategies[kind]
	r.prepareCreate(kind, s, obj)
	generated := obj.GetName() == "" && obj.GetGenerateName() != ""
	for try := 1; ; try++ {
		if generated {
			obj.SetName(api.GenerateName(obj.GetGenerateName()))
			if s.Default != nil { // some defaults come from the name
				s.Default(obj)
			}
		}
		e, err := r.create(ctx, kind, s, obj, opts)
		if generated && try < generateTries && apierrors.IsAlreadyExists(err) {
			continue
		}
		return e, err
	}
}

func (r *Registry) create(ctx context.Context, kind *api.Kind, s *Strategy, obj api.Object, opts WriteOptions) (*Entry, error) {
	if err := invalid(kind, obj.GetName(), r.mistakes(kind, s, obj)); err != nil {
		return nil, err
	}
	if err := r.admitNamespace(ctx, kind, obj); err != nil {
		return nil, err
	}
	if err := r.admit(ctx, kind, s, obj); err != nil {
		return nil, err
	}
	if s.Warnings != nil {
		opts.warn(s.Warnings(obj))
	}
	if kind == api.Leases || kind == api.Nodes {
		ctx = store.Essential(ctx) // as with their changes
	}
	key := keyOf(kind, obj.GetNamespace(), obj.GetName())
	raw, err := encode(kind, obj)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if opts.DryRun {
		if r.cache.byRow[kind].get(key) != nil {
			return nil, apierrors.NewAlreadyExists(kind.GR(), obj.GetName())
		}
		return newEntry(kind, key, 0, raw, nil), nil
	}
	return r.write(ctx, kind, key, obj, raw, func() (int64, error) { return r.store.Create(ctx, prefixOf(kind)+key, raw) })
}

// mistakes is everything that is wrong with a new object.
func (r *Registry) mistakes(kind *api.Kind, s *Strategy, obj api.Object) field.ErrorList {
	errs := validation.ObjectMeta(obj, kind.Namespaced)
	if s.Validate != nil {
		errs = append(errs, s.Validate(obj)...)
	}
	return errs
}

// admit has the kind's own Admit look at a new object. What that misses may have been made a moment ago,
// so before it refuses, the cache has to be as new as the store.
func (r *Registry) admit(ctx context.Context, kind *api.Kind, s *Strategy, obj api.Object) error {
	beside := Beside{r.cache}
	if s.Admit == nil || !s.AdmitByNewest && s.Admit(obj, beside) == nil {
		return nil
	}
	if err := r.cache.current(ctx); err != nil {
		return storeErr(kind, obj.GetName(), err)
	}
	if err := s.Admit(obj, beside); err != nil {
		return apierrors.NewForbidden(kind.GR(), obj.GetName(), err)
	}
	return nil
}

// Beside is the other objects, as far as the cache knows. They are shared.
type Beside struct{ cache *cache }

// Get is an object; nil if there is none.
func (b Beside) Get(kind *api.Kind, namespace, name string) api.Object {
	if e := b.cache.byRow[kind].get(keyOf(kind, namespace, name)); e != nil {
		return e.Object()
	}
	return nil
}

// All is every object of a kind that lives in no namespace.
func (b Beside) All(kind *api.Kind) []api.Object {
	entries, _ := b.cache.snapshot(b.cache.byRow[kind], "", "")
	all := make([]api.Object, len(entries))
	for i, e := range entries {
		all[i] = e.Object()
	}
	return all
}

// write puts bytes into the store and leaves the decoded object where the watch will find it. obj
// becomes shared.
func (r *Registry) write(ctx context.Context, kind *api.Kind, key string, obj api.Object, raw []byte, put func() (int64, error)) (*Entry, error) {
	kc := r.cache.byRow[kind]
	// The cached object gets its revision from the watch, the caller's from the write's answer: two
	// goroutines, so two objects, which share all but the outermost struct.
	h := &handover{raw: raw, obj: shallow(obj)}
	kc.written.Store(key, h)
	rev, err := put()
	if err != nil {
		kc.written.CompareAndDelete(key, h)
		return nil, storeErr(kind, obj.GetName(), err)
	}
	// Forget it when the watch has passed by without using it (another write of the key came between).
	if r.cache.rev.Load() >= rev {
		kc.written.CompareAndDelete(key, h)
	}
	return newEntry(kind, key, rev, raw, obj), nil
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

// prepareCreate sets what a new object gets from the server.
func (r *Registry) prepareCreate(kind *api.Kind, s *Strategy, obj api.Object) {
	obj.SetUID(uuid.NewUUID())
	obj.SetCreationTimestamp(metav1.NewTime(r.now().UTC().Truncate(1e9)))
	obj.SetDeletionTimestamp(nil)
	obj.SetDeletionGracePeriodSeconds(nil)
	obj.SetSelfLink("")
	obj.SetManagedFields(nil)
	obj.SetGeneration(0)
	if s.SpecChanged != nil {
		obj.SetGeneration(1)
	}
	if s.CopyStatus != nil && kind.Status && !s.BornWithStatus {
		s.CopyStatus(obj, kind.New())
	}
	if s.PrepareCreate != nil {
		s.PrepareCreate(obj)
	}
	if s.Default != nil {
		s.Default(obj)
	}
}

// admitNamespace refuses what would be created in a namespace that is not there or is going.
func (r *Registry) admitNamespace(ctx context.Context, kind *api.Kind, obj api.Object) error {
	if !kind.Namespaced {
		return nil
	}
	name := obj.GetNamespace()
	kc := r.cache.byRow[api.Namespaces]
	e := kc.get(name)
	if e == nil { // it may have been made a moment ago
		if err := r.cache.current(ctx); err != nil {
			return storeErr(api.Namespaces, name, err)
		}
		e = kc.get(name)
	}
	if e == nil {
		return apierrors.NewNotFound(api.Namespaces.GR(), name)
	}
	if e.Object().(*corev1.Namespace).Status.Phase == corev1.NamespaceTerminating {
		err := apierrors.NewForbidden(kind.GR(), obj.GetName(),
			errors.New("unable to create new content in namespace "+name+" because it is being terminated"))
		err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
			Type: corev1.NamespaceTerminatingCause, Message: "namespace " + name + " is being terminated", Field: "metadata.namespace"})
		return err
	}
	return nil
}

// EnsureNamespace creates one of the cluster's own namespaces if it is not there.
func (r *Registry) EnsureNamespace(ctx context.Context, name string) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := r.Create(store.Essential(ctx), System, api.Namespaces, "", ns, WriteOptions{})
	if err == nil || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
