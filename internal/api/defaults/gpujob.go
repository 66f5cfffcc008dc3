package defaults

import (
	"slices"

	"minik8s/internal/api/minik8s"
)

// GpuJob says where it is compiled, when its folder goes, and what it waits for in the jobs before it. What is asked of
// Slurm stays empty: the SlurmCluster and Slurm have defaults of their own.
func GpuJob(j *minik8s.GpuJob) {
	s := &j.Spec
	if s.CompileOn == "" {
		s.CompileOn = minik8s.CompileOnLogin
	}
	if s.Cleanup == "" {
		s.Cleanup = minik8s.CleanupOnSuccess
	}
	s.DependsOn = slices.Clone(s.DependsOn) // it may be shared with what another try begins from
	for i := range s.DependsOn {
		if d := &s.DependsOn[i]; d.When == "" {
			d.When = "afterok"
		}
	}
}

// SlurmCluster sets the ports, and how often Slurm is asked.
func SlurmCluster(c *minik8s.SlurmCluster) {
	s := &c.Spec
	if s.Port == 0 {
		s.Port = 22
	}
	if s.Jump != nil && s.Jump.Port == 0 {
		jump := *s.Jump
		jump.Port = 22
		s.Jump = &jump
	}
	if s.PollSeconds == 0 {
		s.PollSeconds = 30
	}
}
