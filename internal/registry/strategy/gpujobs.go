package strategy

import (
	"minik8s/internal/api"
	"minik8s/internal/api/dialect"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/registry"
)

func gpuJobStrategy() *registry.Strategy {
	return &registry.Strategy{
		CopyStatus:  onStep(func(dst, src *minik8s.GpuJob) { dst.Status = src.Status }),
		SpecChanged: specChanged(func(j *minik8s.GpuJob) any { return j.Spec }),
		Dialect:     dialect.For(api.GpuJobs),
	}
}

func slurmClusterStrategy() *registry.Strategy {
	return &registry.Strategy{
		CopyStatus:  onStep(func(dst, src *minik8s.SlurmCluster) { dst.Status = src.Status }),
		SpecChanged: specChanged(func(c *minik8s.SlurmCluster) any { return c.Spec }),
	}
}
