package strategy

import (
	"minik8s/internal/api/validation"
	"minik8s/internal/registry"
)

func serviceAccountStrategy() *registry.Strategy {
	return &registry.Strategy{Validate: checkOne(validation.ServiceAccount)}
}
