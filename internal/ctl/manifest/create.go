package manifest

import (
	"context"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
)

// Create sends a document as it was written. It fails if the object exists.
func Create(ctx context.Context, s *session.Session, d *Document, o Options) (api.Object, string, error) {
	opts, err := o.write()
	if err != nil {
		return nil, "", err
	}
	body, err := json.Marshal(d.doc)
	if err != nil {
		return nil, "", err
	}
	obj, err := s.API.CreateRaw(ctx, d.Kind, d.Namespace, body, opts)
	if apierrors.IsAlreadyExists(err) {
		return nil, "", exit.Failf(exit.Conflict, "%s exists already; minik8sd ctl apply changes it, minik8sd ctl update replaces it",
			brief.Ref(d.Kind, d.Name))
	}
	return obj, "created", err
}
