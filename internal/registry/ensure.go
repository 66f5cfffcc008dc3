package registry

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/store"
)

// EnsureNamespace creates one of the cluster's own namespaces if it does not exist.
func (r *Registry) EnsureNamespace(ctx context.Context, name string) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := r.Create(store.Essential(ctx), own("create", api.Namespaces, "", ""), ns, WriteOptions{})
	if err == nil || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// EnsurePriorityClasses creates the cluster's own priority classes if they do not exist.
func (r *Registry) EnsurePriorityClasses(ctx context.Context) error {
	for _, pc := range api.SystemPriorityClasses() {
		_, err := r.Create(store.Essential(ctx), own("create", api.PriorityClasses, "", ""), pc, WriteOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}
