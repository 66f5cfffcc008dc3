package registry

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/validation"
)

func serviceAccountStrategy() *Strategy {
	return &Strategy{Validate: checkOne(validation.ServiceAccount)}
}

// lendPullSecrets gives a new pod that names no imagePullSecrets those of its account.
func (r *Registry) lendPullSecrets(pod *corev1.Pod) {
	if len(pod.Spec.ImagePullSecrets) > 0 || pod.Spec.ServiceAccountName == "" {
		return
	}
	if e := r.cache.byRow[api.ServiceAccounts].get(keyOf(api.ServiceAccounts, pod.Namespace, pod.Spec.ServiceAccountName)); e != nil {
		pod.Spec.ImagePullSecrets = slices.Clone(e.Object().(*corev1.ServiceAccount).ImagePullSecrets)
	}
}
