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

// Patch is a change to an object, as JSON, of one of Kubernetes' four patch types.
type Patch struct {
	Type types.PatchType
	Data []byte
	// Validation is Strict, Warn or Ignore: how to treat fields that the kind does not have.
	Validation string
	// Force lets an apply take over fields that other managers have set to another value.
	Force bool
}

// Patch changes an object by a JSON patch, a merge patch, a strategic merge patch, or by applying a manifest
// (server-side apply), which can also create the object. A patch without a resourceVersion is retried if another
// write came first. The errors are 400, 403, 404, 409, 413, 415, 422, and those of storage.Error.
func (r *Registry) Patch(ctx context.Context, q *Request, p Patch, opts WriteOptions) (e *Entry, created bool, err error) {
	if err := r.authorizeAs(ctx, "patch", q); err != nil {
		return nil, false, err
	}
	switch {
	case !slices.Contains(patchTypes, p.Type): // before the lookup, where a 404 would mislead
		return nil, false, patch.Unsupported(p.Type)
	case p.Type == types.ApplyPatchType && r.shapeOf(q).form != nil:
		return nil, false, patch.Unsupported(p.Type)
	case p.Type == types.ApplyPatchType:
		return r.apply(ctx, q, p, opts)
	case p.Force:
		return nil, false, Invalid(patchOptions, "", field.ErrorList{field.Forbidden(field.NewPath("force"), "may not be specified for non-apply patch")})
	}
	e, err = r.patch(ctx, q, p, opts)
	return e, false, err
}

func (r *Registry) patch(ctx context.Context, q *Request, p Patch, opts WriteOptions) (*Entry, error) {
	shape, name := r.shapeOf(q), q.Name
	kind := shape.kind()
	return r.modify(ctx, q, opts, false, func(old api.Object) (api.Object, error) {
		before, err := json.Marshal(shape.shown(old))
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		after, err := patch.Apply(kind, q.Name, p.Type, before, p.Data)
		if err != nil {
			return nil, err
		}
		var patched func(map[string]any) ([]string, error)
		if q.Sub == "" { // a seed manifest that is applied again comes as a patch
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
		return shape.stored(obj, old)
	})
}
