package registry

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api"
	"minik8s/internal/store"
)

// Ensure creates the cluster's own objects, those of them that do not exist.
func (r *Registry) Ensure(ctx context.Context, objs ...api.Object) error {
	for _, obj := range objs {
		kind, name := api.KindOf(obj), obj.GetName()
		_, err := r.Create(store.Essential(ctx), Own("create", kind, obj.GetNamespace(), "", ""), obj, WriteOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("%s %s: %w", kind, name, err)
		}
	}
	return nil
}
