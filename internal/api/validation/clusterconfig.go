package validation

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api/minik8s"
)

// ClusterConfig checks the settings of the cluster.
func ClusterConfig(c *minik8s.ClusterConfig) field.ErrorList {
	var errs field.ErrorList
	if c.Name != "" && c.Name != minik8s.ClusterConfigName {
		errs = append(errs, field.NotSupported(field.NewPath("metadata", "name"), c.Name, []string{minik8s.ClusterConfigName}))
	}
	if s := c.Spec.Scheduler.Strategy; s != "" && !slices.Contains(minik8s.Strategies, s) {
		errs = append(errs, field.NotSupported(field.NewPath("spec", "scheduler", "strategy"), s, minik8s.Strategies))
	}
	return errs
}

// ClusterConfigUpdate checks new settings. They may differ from the old ones in any way.
func ClusterConfigUpdate(c, _ *minik8s.ClusterConfig) field.ErrorList { return ClusterConfig(c) }
