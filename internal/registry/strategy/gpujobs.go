package strategy

import (
	"minik8s/internal/api"
	"minik8s/internal/api/defaults"
	"minik8s/internal/api/dialect"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/api/validation"
	"minik8s/internal/registry"
)

func gpuJobStrategy() *registry.Strategy {
	return &registry.Strategy{
		Default:        onOne(defaults.GpuJob),
		Validate:       checkOne(validation.GpuJob),
		ValidateUpdate: checkStep(validation.GpuJobUpdate),
		ValidateStatus: checkStep(validation.GpuJobStatusUpdate),
		CopyStatus:     onStep(func(dst, src *minik8s.GpuJob) { dst.Status = src.Status }),
		SpecChanged:    specChanged(func(j *minik8s.GpuJob) any { return j.Spec }),
		Dialect:        dialect.For(api.GpuJobs),
	}
}

func slurmClusterStrategy() *registry.Strategy {
	return &registry.Strategy{
		Default:        onOne(defaults.SlurmCluster),
		Validate:       checkOne(validation.SlurmCluster),
		ValidateStatus: checkStep(validation.SlurmClusterStatusUpdate),
		CopyStatus:     onStep(func(dst, src *minik8s.SlurmCluster) { dst.Status = src.Status }),
		SpecChanged:    specChanged(func(c *minik8s.SlurmCluster) any { return c.Spec }),
	}
}
