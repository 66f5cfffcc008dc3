package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
	"minik8s/internal/api/dialect"
	"minik8s/internal/registry/decode"
	"minik8s/internal/registry/patch"
)

var patchTypes = []types.PatchType{types.JSONPatchType, types.MergePatchType, types.StrategicMergePatchType, types.ApplyPatchType}

// Patch is a change of an object of one of Kubernetes' four types, as JSON.
type Patch struct {
	Type types.PatchType
	Data []byte
	// Validation is Strict, Warn or Ignore: what to do about fields that the kind does not have.
	Validation string
	// Force lets an apply take over fields that other managers have set otherwise.
	Force bool
}

// Patch changes an object by a JSON patch, a merge patch, a strategic merge patch, or by applying a manifest
// (server-side apply), which also creates it. A patch that carries no resourceVersion is applied anew when another
// writer came first.
func (r *Registry) Patch(ctx context.Context, q *Request, p Patch, opts WriteOptions) (e *Entry, created bool, err error) {
	if err := r.authorizeAs(ctx, "patch", q); err != nil {
		return nil, false, err
	}
	switch {
	case !slices.Contains(patchTypes, p.Type): // before the object is looked for: that it is missing would mislead
		return nil, false, patch.Unsupported(p.Type)
	case p.Type == types.ApplyPatchType:
		return r.apply(ctx, q, p, opts)
	case p.Force:
		return nil, false, invalid(patchOptions, "", field.ErrorList{field.Forbidden(field.NewPath("force"), "may not be specified for non-apply patch")})
	}
	e, err = r.patch(ctx, q, p, opts)
	return e, false, err
}

func (r *Registry) patch(ctx context.Context, q *Request, p Patch, opts WriteOptions) (*Entry, error) {
	kind, name := q.served(), q.Name
	return r.modify(ctx, q, opts, false, func(old api.Object) (api.Object, error) {
		before, err := json.Marshal(q.shown(old))
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		after, err := patch.Apply(kind, q.Name, p.Type, before, p.Data)
		if err != nil {
			return nil, err
		}
		var patched func(map[string]any) ([]string, error)
		if q.Sub == "" { // a manifest of the seeds that is applied again comes as a patch
			patched = dialect.Patched(kind)
		}
		obj, warnings, err := decode.Manifest(kind, patched, after, p.Validation)
		if err != nil {
			return nil, decode.BadRequest(err)
		}
		opts.warn(warnings)
		if obj.GetName() != name {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("metadata.name: a patch cannot change it from %q to %q", name, obj.GetName()))
		}
		if obj.GetResourceVersion() == old.GetResourceVersion() && !patch.NamesRevision(p.Data) {
			obj.SetResourceVersion("")
		}
		return q.stored(obj), nil
	})
}
