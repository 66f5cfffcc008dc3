package registry

import (
	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/api/validation"
)

// clusterConfigStrategy: the settings have no status; generation counts their changes.
func clusterConfigStrategy() *Strategy {
	return &Strategy{
		Validate:       checkOne(validation.ClusterConfig),
		ValidateUpdate: checkStep(validation.ClusterConfigUpdate),
		SpecChanged: func(obj, old api.Object) bool {
			return obj.(*minik8s.ClusterConfig).Spec != old.(*minik8s.ClusterConfig).Spec
		},
	}
}
