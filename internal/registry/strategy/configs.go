package strategy

import (
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/defaults"
	"minik8s/internal/api/validation"
	"minik8s/internal/registry"
)

func configMapStrategy() *registry.Strategy {
	return &registry.Strategy{
		Validate:       checkOne(validation.ConfigMap),
		ValidateUpdate: checkStep(validation.ConfigMapUpdate),
	}
}

func secretStrategy() *registry.Strategy {
	return &registry.Strategy{
		Default: onOne(defaults.Secret),
		PrepareUpdate: onStep(func(s, old *corev1.Secret) {
			if s.Type == "" { // the type cannot change, so an update may omit it
				s.Type = old.Type
			}
		}),
		Validate:       checkOne(validation.Secret),
		ValidateUpdate: checkStep(validation.SecretUpdate),
		Fields:         selectable(map[string]func(*corev1.Secret) string{"type": func(s *corev1.Secret) string { return string(s.Type) }}),
	}
}
