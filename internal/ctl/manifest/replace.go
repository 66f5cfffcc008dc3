package manifest

import (
	"context"
	"encoding/json"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/deletion"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
	"minik8s/internal/ctl/wait"
)

// recreateWait is how long a replacement waits until the old object is gone.
const recreateWait = 2 * time.Minute

// Replace overwrites an object with a document. If the document has a resourceVersion, Replace fails if the object has
// changed since.
func Replace(ctx context.Context, s *session.Session, d *Document, o Options) (api.Object, string, error) {
	opts, err := o.write()
	if err != nil {
		return nil, "", err
	}
	data, err := json.Marshal(d.canonical)
	if err != nil {
		return nil, "", err
	}
	obj := d.Kind.New()
	if err := json.Unmarshal(data, obj); err != nil {
		return nil, "", exit.Failf(exit.Failed, "%s: %v", d.Source, err)
	}
	out, err := s.API.Update(ctx, obj, opts)
	switch {
	case err == nil:
		return out, "replaced", nil
	case apierrors.IsNotFound(err):
		return nil, "", exit.Failf(exit.NotFound, "%s is not there to be replaced; minik8sd ctl apply creates it", brief.Ref(d.Kind, d.Name))
	case apierrors.IsConflict(err):
		return nil, "", exit.Failf(exit.Conflict, "%s was changed by someone since: get it anew (minik8sd ctl get %s %s%s -o yaml), or take resourceVersion out of the manifest",
			brief.Ref(d.Kind, d.Name), d.Kind.Singular, d.Name, brief.Namespace(d.Namespace))
	case !apierrors.IsInvalid(err) || !o.Recreate || o.DryRun:
		return nil, "", err
	}
	out, err = recreate(ctx, s, d, obj, opts)
	return out, "replaced by a new one", err
}

// recreate deletes an object and creates it again from the document.
func recreate(ctx context.Context, s *session.Session, d *Document, obj api.Object, opts client.WriteOptions) (api.Object, error) {
	obj.SetResourceVersion("")
	obj.SetUID("")
	// A dry run under another name comes first, so that nothing is deleted for a manifest that cannot be created.
	trial := obj.DeepCopyObject().(api.Object)
	trial.SetName("")
	trial.SetGenerateName("trial-")
	if _, err := s.API.Create(ctx, trial, client.WriteOptions{DryRun: true}); err != nil {
		return nil, err
	}
	old, err := s.API.Get(ctx, d.Key())
	if err != nil {
		return nil, err
	}
	// The old object must be gone first, since the server refuses a second object of that name.
	del := deletion.WithDependents()
	del.Preconditions = metav1.NewUIDPreconditions(string(old.GetUID()))
	if _, err := s.API.Delete(ctx, d.Key(), del); err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	if err := wait.Gone(ctx, s, d.Key(), old.GetUID(), recreateWait); err != nil {
		return nil, err
	}
	return s.API.Create(ctx, obj, opts)
}
