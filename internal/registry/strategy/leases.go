package strategy

import (
	"minik8s/internal/api/validation"
	"minik8s/internal/registry"
)

func leaseStrategy() *registry.Strategy {
	return &registry.Strategy{
		Validate:       checkOne(validation.Lease),
		ValidateUpdate: checkStep(validation.LeaseUpdate),
		Restrict:       ownOnly("Lease"),
		Essential:      true,
	}
}
