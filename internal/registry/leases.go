package registry

import "minik8s/internal/api/validation"

func leaseStrategy() *Strategy {
	return &Strategy{
		Validate:       checkOne(validation.Lease),
		ValidateUpdate: checkStep(validation.LeaseUpdate),
		Essential:      true,
	}
}
