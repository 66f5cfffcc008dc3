package strategy

import (
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
	"minik8s/internal/api/defaults"
	"minik8s/internal/api/dialect"
	"minik8s/internal/api/validation"
	"minik8s/internal/registry"
)

// namespaceStrategy: a deleted namespace is Terminating until the controller that empties it removes its finalizer
// from spec.finalizers, by the finalize subresource.
func namespaceStrategy() *registry.Strategy {
	return &registry.Strategy{
		Default: onOne(defaults.Namespace),
		PrepareCreate: onOne(func(ns *corev1.Namespace) {
			ns.Spec.Finalizers = []corev1.FinalizerName{corev1.FinalizerKubernetes}
			ns.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceActive}
		}),
		PrepareUpdate: onStep(func(ns, old *corev1.Namespace) {
			ns.Spec.Finalizers = old.Spec.Finalizers
			if ns.DeletionTimestamp != nil {
				ns.Status.Phase = corev1.NamespaceTerminating
			}
		}),
		Validate:       checkOne(validation.Namespace),
		ValidateUpdate: checkStep(validation.NamespaceUpdate),
		ValidateStatus: checkStep(validation.NamespaceStatusUpdate),
		CopyStatus:     onStep(func(dst, src *corev1.Namespace) { dst.Status = src.Status }),
		Fields: selectable(map[string]func(*corev1.Namespace) string{
			"status.phase": func(ns *corev1.Namespace) string { return string(ns.Status.Phase) },
		}),
		Subresources: map[string]registry.Subresource{
			"finalize": {Part: checkStep(func(ns, given *corev1.Namespace) field.ErrorList {
				ns.Spec.Finalizers = given.Spec.Finalizers
				return validation.Namespace(ns)
			})},
		},
		Empty:        func(obj api.Object) bool { return len(obj.(*corev1.Namespace).Spec.Finalizers) == 0 },
		AdmitContent: admitContent,
		MayDelete: func(obj api.Object) error {
			if slices.Contains(lasting, obj.GetName()) {
				return errors.New("this namespace belongs to the cluster and may not be deleted")
			}
			return nil
		},
		Dialect: dialect.For(api.Namespaces),
	}
}

// admitContent takes nothing new into a namespace that is being deleted, so that it can be emptied.
func admitContent(scope api.Object, kind *api.Kind, obj api.Object) error {
	if scope.(*corev1.Namespace).Status.Phase != corev1.NamespaceTerminating {
		return nil
	}
	name := scope.GetName()
	err := apierrors.NewForbidden(kind.GR(), obj.GetName(),
		errors.New("unable to create new content in namespace "+name+" because it is being terminated"))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: corev1.NamespaceTerminatingCause, Message: "namespace " + name + " is being terminated", Field: "metadata.namespace"})
	return err
}

// lasting are the namespaces that cannot be deleted; the same as Kubernetes'.
var lasting = []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic}
