package manifest

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/console"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
)

// Apply creates an object or merges the manifest into it: fields in the manifest are set, fields that were in the last
// applied manifest but not in this one are removed, and all other fields keep their values. It returns the object and
// what was done.
func Apply(ctx context.Context, s *session.Session, d *Document, o Options) (api.Object, string, error) {
	opts, err := o.write()
	switch {
	case err != nil:
		return nil, "", err
	case d.Name == "":
		return nil, "", exit.Usagef("apply needs metadata.name; with generateName use minik8sd ctl create -f")
	case o.ServerSide:
		return applyServerSide(ctx, s, d, o, opts)
	case o.ForceConflicts:
		return nil, "", exit.Usagef("--force-conflicts needs --server-side: by itself apply asks nobody")
	}
	current, err := s.API.Get(ctx, d.Key())
	if apierrors.IsNotFound(err) {
		obj, err := applyNew(ctx, s, d, opts)
		if !apierrors.IsAlreadyExists(err) {
			return obj, "created", err
		}
		// Somebody else created it in the meantime.
		if current, err = s.API.Get(ctx, d.Key()); err != nil {
			return nil, "", err
		}
	} else if err != nil {
		return nil, "", err
	}
	return merge(ctx, s, d, current, opts)
}

// merge changes an existing object to match the manifest.
func merge(ctx context.Context, s *session.Session, d *Document, current api.Object, opts client.WriteOptions) (api.Object, string, error) {
	patch, err := difference(s, d, current)
	if err != nil {
		return nil, "", err
	}
	if string(patch.Data) == "{}" {
		return current, "unchanged", nil
	}
	obj, err := s.API.Patch(ctx, d.Key(), patch, opts)
	if apierrors.IsInvalid(err) && d.Kind == api.Pods {
		return nil, "", exit.Failf(exit.Failed, "%s\nMost of a pod cannot be changed while it lives. To replace it: minik8sd ctl update pod %s%s -f FILE --force",
			exit.Message(err), d.Name, brief.Namespace(d.Namespace))
	}
	if err != nil {
		return nil, "", err
	}
	// A value that is only written differently makes a patch that changes nothing.
	if obj.GetResourceVersion() == current.GetResourceVersion() {
		return obj, "unchanged", nil
	}
	return obj, "configured", nil
}

// applyServerSide lets the server merge the manifest.
func applyServerSide(ctx context.Context, s *session.Session, d *Document, o Options, opts client.WriteOptions) (api.Object, string, error) {
	data, err := json.Marshal(d.canonical)
	if err != nil {
		return nil, "", err
	}
	opts.FieldManager = o.FieldManager
	patch := client.Patch{Type: types.ApplyPatchType, Data: data, Force: o.ForceConflicts}
	obj, err := s.API.Patch(ctx, d.Key(), patch, opts)
	if apierrors.IsConflict(err) {
		return nil, "", exit.Failf(exit.Failed, "%s\nTo take these fields over: apply once more with --force-conflicts. To leave them to the others: take them out of the manifest.", exit.Message(err))
	}
	return obj, "applied", err
}

// applyNew creates an object. The document is sent as it was written, since the server understands the seed systems'
// forms.
func applyNew(ctx context.Context, s *session.Session, d *Document, opts client.WriteOptions) (api.Object, error) {
	doc := d.doc
	if _, ok := doc["metadata"].(map[string]any); !ok {
		// A form without metadata has no place for the annotation.
		doc = d.canonical
	}
	body, err := annotated(doc, d.canonical)
	if err != nil {
		return nil, err
	}
	return s.API.CreateRaw(ctx, d.Kind, d.Namespace, body, opts)
}

// difference returns the patch that changes an object to match the manifest. It merges lists by their keys where the
// kind's Go type tells them; of a kind that is not compiled in a list is one value, as in kubectl.
func difference(s *session.Session, d *Document, current api.Object) (client.Patch, error) {
	var none client.Patch
	now, err := json.Marshal(current)
	if err != nil {
		return none, err
	}
	modified, err := annotated(d.canonical, d.canonical)
	if err != nil {
		return none, err
	}
	original := current.GetAnnotations()[corev1.LastAppliedConfigAnnotation]
	if original == "" {
		s.Note("%s %s was not made by apply: fields that you take out of its manifest stay until you do so once more",
			s.PaintErr(console.Yellow, "warning:"), brief.Ref(d.Kind, d.Name))
	}
	if _, ok := current.(api.HasKind); ok {
		data, err := jsonmergepatch.CreateThreeWayJSONMergePatch([]byte(original), modified, now)
		return client.Patch{Type: types.MergePatchType, Data: data}, err
	}
	schema, err := strategicpatch.NewPatchMetaFromStruct(d.Kind.New())
	if err != nil {
		return none, err
	}
	data, err := strategicpatch.CreateThreeWayMergePatch([]byte(original), modified, now, schema, true)
	return client.Patch{Type: types.StrategicMergePatchType, Data: data}, err
}
