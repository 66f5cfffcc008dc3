package registry

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
	"minik8s/internal/registry/apply"
	"minik8s/internal/registry/decode"
	"minik8s/internal/registry/storage"
)

// patchOptions is the kind that errors about a patch's query parameters name. It is never stored.
var patchOptions = &api.Kind{Group: "meta.k8s.io", Version: "v1", Kind: "PatchOptions", Plural: "patchoptions"}

// checkManager refuses (422) a field manager name that is too long or has unprintable characters.
func checkManager(manager string) error {
	return Invalid(patchOptions, "", metav1validation.ValidateFieldManager(manager, field.NewPath("fieldManager")))
}

// apply applies a manifest to an object, and creates the object if it does not exist. The manager must have a name,
// and comes to own the fields that the manifest names.
func (r *Registry) apply(ctx context.Context, q *Request, p Patch, opts WriteOptions) (e *Entry, created bool, err error) {
	if opts.Manager == "" {
		return nil, false, Invalid(patchOptions, "", field.ErrorList{field.Required(field.NewPath("fieldManager"), "is required for apply patch")})
	}
	if err := checkManager(opts.Manager); err != nil {
		return nil, false, err
	}
	config, err := r.configuration(q, p, opts)
	if err != nil {
		return nil, false, err
	}
	opts.applied = true
	for try := 0; ; try++ {
		e, err := r.modify(ctx, q, opts, false, func(old api.Object) (api.Object, error) {
			if rv := config.GetResourceVersion(); rv != "" && rv != old.GetResourceVersion() {
				return nil, storage.Conflict(q.Kind, q.Name)
			}
			return r.applied(q, old.DeepCopyObject().(api.Object), config, p, opts)
		})
		if !apierrors.IsNotFound(err) || q.Sub != "" {
			return e, false, err
		}
		e, err = r.applyNew(ctx, q, config, p, opts)
		if try < maxRetries && apierrors.IsAlreadyExists(err) {
			continue // another request has created it meanwhile
		}
		return e, err == nil, err
	}
}

// applied returns live with the configuration applied to it.
func (r *Registry) applied(q *Request, live api.Object, config *unstructured.Unstructured, p Patch, opts WriteOptions) (api.Object, error) {
	obj, err := r.fields.Applied(r.shapeOf(q).kind(), q.Sub, r.shapeOf(q).shown(live), config.DeepCopy().Object, opts.Manager, p.Force)
	if err != nil {
		return nil, err
	}
	obj.SetResourceVersion("")
	return r.shapeOf(q).stored(obj, live)
}

// applyNew creates the object that is applied and does not exist. The user must also be allowed to create it.
func (r *Registry) applyNew(ctx context.Context, q *Request, config *unstructured.Unstructured, p Patch, opts WriteOptions) (*Entry, error) {
	create := &Request{User: q.User, Verb: "create", Kind: q.Kind, Namespace: q.Namespace, Name: q.Name, Fence: q.Fence}
	if err := r.Authorize(ctx, create); err != nil {
		return nil, err
	}
	switch {
	case config.GetUID() != "":
		return nil, apierrors.NewConflict(q.Kind.GR(), q.Name, fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", config.GetUID()))
	case config.GetResourceVersion() != "":
		return nil, apierrors.NewConflict(q.Kind.GR(), q.Name, errors.New("resourceVersion is specified, and no existing object was found"))
	}
	empty := q.Kind.New()
	empty.GetObjectKind().SetGroupVersionKind(q.Kind.GVK())
	empty.SetName(q.Name)
	empty.SetNamespace(q.Namespace)
	obj, err := r.applied(q, empty, config, p, opts)
	if err != nil {
		return nil, err
	}
	return r.Create(ctx, create, obj, opts)
}

// configuration reads the applied manifest.
func (r *Registry) configuration(q *Request, p Patch, opts WriteOptions) (*unstructured.Unstructured, error) {
	data := p.Data
	if dialect := r.Strategy(q.Seen()).Dialect; dialect != nil && q.Sub == "" {
		var notes []string
		var err error
		if data, notes, err = decode.Canonical(q.Seen(), data, dialect); err != nil {
			return nil, err
		}
		opts.warn(notes)
	}
	m, err := apply.ReadManifest(r.shapeOf(q).kind(), q.Namespace, q.Name, data, p.Validation)
	var strict *decode.StrictError
	if errors.As(err, &strict) {
		return nil, r.Refuse(q, m.Typed, strict)
	}
	if err != nil {
		return nil, err
	}
	opts.warn(m.Warnings)
	return m.Config, nil
}
