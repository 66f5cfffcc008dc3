package strategy

import (
	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/api/validation"
	"minik8s/internal/registry"
)

// clusterConfigStrategy: the settings have no status; generation counts their changes.
func clusterConfigStrategy() *registry.Strategy {
	return &registry.Strategy{
		Validate:       checkOne(validation.ClusterConfig),
		ValidateUpdate: checkStep(validation.ClusterConfigUpdate),
		SpecChanged: func(obj, old api.Object) bool {
			return obj.(*minik8s.ClusterConfig).Spec != old.(*minik8s.ClusterConfig).Spec
		},
	}
}
