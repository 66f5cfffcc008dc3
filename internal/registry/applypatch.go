package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
)

// patchOptions is the kind that the query of a patch is called in errors; it is stored nowhere.
var patchOptions = &api.Kind{Group: "meta.k8s.io", Version: "v1", Kind: "PatchOptions", Plural: "patchoptions"}

// checkManager refuses what can be nobody's name for who writes.
func checkManager(manager string) error {
	return invalid(patchOptions, "", metav1validation.ValidateFieldManager(manager, field.NewPath("fieldManager")))
}

// apply makes an object what a manifest says of it, and creates it if there is none. The manager, who must have a
// name, comes to own the fields that the manifest names.
func (r *Registry) apply(ctx context.Context, q *Request, p Patch, opts WriteOptions) (e *Entry, created bool, err error) {
	if opts.Manager == "" {
		return nil, false, invalid(patchOptions, "", field.ErrorList{field.Required(field.NewPath("fieldManager"), "is required for apply patch")})
	}
	if err := checkManager(opts.Manager); err != nil {
		return nil, false, err
	}
	if q.View != nil { // whose fields the managers own would have two names
		return nil, false, apierrors.NewBadRequest("a " + q.View.APIVersion() + " " + q.View.Kind + " cannot be applied: apply it as " + q.Kind.APIVersion())
	}
	config, err := r.configuration(q, p, opts)
	if err != nil {
		return nil, false, err
	}
	opts.applied = true
	for try := 0; ; try++ {
		e, err := r.modify(ctx, q, opts, false, func(old api.Object) (api.Object, error) {
			if rv := config.GetResourceVersion(); rv != "" && rv != old.GetResourceVersion() {
				return nil, conflict(q.Kind, q.Name)
			}
			return r.applied(q, old.DeepCopyObject().(api.Object), config, p, opts)
		})
		if !apierrors.IsNotFound(err) || q.Sub != "" {
			return e, false, err
		}
		e, err = r.applyNew(ctx, q, config, p, opts)
		if try < maxRetries && apierrors.IsAlreadyExists(err) {
			continue // somebody has made it meanwhile
		}
		return e, err == nil, err
	}
}

// applied is live with the configuration in it.
func (r *Registry) applied(q *Request, live api.Object, config *unstructured.Unstructured, p Patch, opts WriteOptions) (api.Object, error) {
	obj, err := r.fields.Applied(q.Kind, q.Sub, live, config.DeepCopy().Object, opts.Manager, p.Force)
	if err != nil {
		return nil, err
	}
	obj.SetResourceVersion("")
	return obj, nil
}

// applyNew creates what is applied and not there; the user must be allowed that too.
func (r *Registry) applyNew(ctx context.Context, q *Request, config *unstructured.Unstructured, p Patch, opts WriteOptions) (*Entry, error) {
	create := &Request{User: q.User, Verb: "create", Kind: q.Kind, Namespace: q.Namespace, Name: q.Name}
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

// configuration reads the manifest that is applied: what it leaves out is no field of it, so it stays a document.
func (r *Registry) configuration(q *Request, p Patch, opts WriteOptions) (*unstructured.Unstructured, error) {
	data := p.Data
	if q.Sub == "" {
		var err error
		if dialect := r.Strategy(q.Kind).Dialect; dialect != nil {
			var notes []string
			if data, notes, err = canonical(q.Kind, data, dialect); err != nil {
				return nil, err
			}
			opts.warn(notes)
		}
	}
	strictly := p.Validation
	if strictly == metav1.FieldValidationIgnore {
		strictly = metav1.FieldValidationWarn // what is unknown has to be known here, though nobody is told
	}
	var says metav1.TypeMeta
	if err := json.Unmarshal(data, &says); err != nil || says.Kind == "" || says.APIVersion == "" {
		return nil, apierrors.NewBadRequest("apiVersion, kind: a manifest that is applied must say what it is: " + q.Kind.APIVersion() + ", " + q.Kind.Kind)
	}
	typed, unknown, err := Decode(q.Kind, nil, data, strictly)
	var strict *StrictError
	if errors.As(err, &strict) {
		return nil, r.Refuse(q, typed, strict)
	}
	if err != nil {
		return nil, err
	}
	if p.Validation != metav1.FieldValidationIgnore {
		opts.warn(unknown)
	}
	config := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &config.Object); err != nil {
		return nil, apierrors.NewBadRequest("the manifest is not valid: " + err.Error())
	}
	dropTimes(config.Object)
	config.SetGroupVersionKind(q.Kind.GVK())
	if name := config.GetName(); name != "" && name != q.Name {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("metadata.name: %q is not the name of the path, %q", name, q.Name))
	}
	config.SetName(q.Name)
	if q.Kind.Namespaced {
		if ns := config.GetNamespace(); ns != "" && ns != q.Namespace {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("metadata.namespace: %q is not the namespace of the path, %q", ns, q.Namespace))
		}
		config.SetNamespace(q.Namespace)
	}
	if config.GetManagedFields() != nil {
		return nil, apierrors.NewBadRequest("metadata.managedFields must be nil")
	}
	if len(unknown) > 0 { // the field manager would refuse them
		return known(q.Kind, typed, config)
	}
	return config, nil
}

// dropTimes takes out the empty creationTimestamp that older clients write in metadata, a template's too: nobody
// means to manage it.
func dropTimes(v any) {
	switch v := v.(type) {
	case map[string]any:
		if t, there := v["creationTimestamp"]; there && t == nil {
			delete(v, "creationTimestamp")
		}
		for _, below := range v {
			dropTimes(below)
		}
	case []any:
		for _, below := range v {
			dropTimes(below)
		}
	}
}

// known is a configuration without the fields that its kind does not have.
func known(kind *api.Kind, typed api.Object, config *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	raw, err := marshal(typed)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	var has map[string]any
	if err := json.Unmarshal(raw, &has); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	prune(config.Object, has)
	config.SetGroupVersionKind(kind.GVK())
	return config, nil
}

// prune takes from doc what the decoded object has not.
func prune(doc, has any) {
	switch doc := doc.(type) {
	case map[string]any:
		had, _ := has.(map[string]any)
		for key, value := range doc {
			other, ok := had[key]
			if !ok {
				delete(doc, key)
				continue
			}
			prune(value, other)
		}
	case []any:
		had, _ := has.([]any)
		for i := range doc {
			if i < len(had) {
				prune(doc[i], had[i])
			}
		}
	}
}
