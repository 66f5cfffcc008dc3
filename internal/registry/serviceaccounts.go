package registry

import (
	"minik8s/internal/api/validation"
)

func serviceAccountStrategy() *Strategy {
	return &Strategy{Validate: checkOne(validation.ServiceAccount)}
}
