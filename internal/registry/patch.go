package registry

import (
	"context"
	"fmt"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
	"minik8s/internal/api/dialect"
)

// A JSON patch is bounded as in Kubernetes: in its operations, and in how many bytes its copies add up to.
const (
	maxPatchOps   = 10000
	maxPatchBytes = 3 << 20
)

func init() { jsonpatch.AccumulatedCopySizeLimit = maxPatchBytes } // the library has one for the whole process

var patchTypes = []types.PatchType{types.JSONPatchType, types.MergePatchType, types.StrategicMergePatchType, types.ApplyPatchType}

// Patch is a change of an object in one of Kubernetes' forms, as JSON.
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
		return nil, false, unsupportedPatch(p.Type)
	case p.Type == types.ApplyPatchType:
		return r.apply(ctx, q, p, opts)
	case p.Force:
		return nil, false, invalid(patchOptions, "", field.ErrorList{field.Forbidden(field.NewPath("force"), "may not be specified for non-apply patch")})
	}
	e, err = r.patch(ctx, q, p, opts)
	return e, false, err
}

func (r *Registry) patch(ctx context.Context, q *Request, p Patch, opts WriteOptions) (*Entry, error) {
	kind, name, pt, patch, validation := q.form(), q.Name, p.Type, p.Data, p.Validation
	return r.modify(ctx, q, opts, false, func(old api.Object) (api.Object, error) {
		before, err := marshal(q.shown(old))
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		after, err := applyPatch(kind, name, pt, before, patch)
		if err != nil {
			return nil, err
		}
		var form func(map[string]any) ([]string, error)
		if q.Sub == "" { // a manifest of the seeds that is applied again comes as a patch
			form = dialect.Patched(kind)
		}
		obj, warnings, err := Decode(kind, form, after, validation)
		if err != nil {
			return nil, asStatus(err)
		}
		opts.warn(warnings)
		if obj.GetName() != name {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("metadata.name: a patch cannot change it from %q to %q", name, obj.GetName()))
		}
		if obj.GetResourceVersion() == old.GetResourceVersion() && !namesRevision(patch) {
			obj.SetResourceVersion("")
		}
		return q.stored(obj), nil
	})
}

func applyPatch(kind *api.Kind, name string, pt types.PatchType, before, patch []byte) ([]byte, error) {
	bad := func(err error) error {
		return apierrors.NewBadRequest("the patch cannot be applied: " + err.Error())
	}
	switch pt {
	case types.JSONPatchType:
		ops, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			return nil, bad(err)
		}
		if len(ops) > maxPatchOps {
			return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("a JSON patch may have %d operations, this one has %d", maxPatchOps, len(ops)))
		}
		after, err := ops.Apply(before)
		if err != nil {
			return nil, unappliable(kind, name, err)
		}
		return after, nil
	case types.MergePatchType:
		after, err := jsonpatch.MergePatch(before, patch)
		if err != nil {
			return nil, bad(err)
		}
		return after, nil
	case types.StrategicMergePatchType:
		if err := checkStrategic(kind, patch); err != nil {
			return nil, bad(err)
		}
		after, err := strategicpatch.StrategicMergePatch(before, patch, kind.New())
		if err != nil {
			return nil, bad(err)
		}
		return after, nil
	}
	return nil, unsupportedPatch(pt)
}
