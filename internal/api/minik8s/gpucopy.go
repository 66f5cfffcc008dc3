package minik8s

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopyInto copies j to out.
func (j *GpuJob) DeepCopyInto(out *GpuJob) {
	*out = *j
	j.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	j.Spec.deepCopyInto(&out.Spec)
	j.Status.deepCopyInto(&out.Status)
}

func (s *GpuJobSpec) deepCopyInto(out *GpuJobSpec) {
	*out = *s
	out.Sources.Files = slices.Clone(s.Sources.Files)
	out.Modules = slices.Clone(s.Modules)
	out.CompileScripts = slices.Clone(s.CompileScripts)
	out.RunScripts = slices.Clone(s.RunScripts)
	out.Env = slices.Clone(s.Env)
	for i := range out.Env {
		s.Env[i].DeepCopyInto(&out.Env[i])
	}
	out.Results = slices.Clone(s.Results)
	if s.Memory != nil {
		q := s.Memory.DeepCopy()
		out.Memory = &q
	}
	out.TimeLimit = copied(s.TimeLimit)
	out.Requeue = copied(s.Requeue)
	out.DependsOn = slices.Clone(s.DependsOn)
	if s.Mail != nil {
		out.Mail = &GpuJobMail{To: s.Mail.To, Types: slices.Clone(s.Mail.Types)}
	}
	out.Sbatch = slices.Clone(s.Sbatch)
}

func (s *GpuJobStatus) deepCopyInto(out *GpuJobStatus) {
	*out = *s
	out.SubmitTime = s.SubmitTime.DeepCopy()
	out.StartTime = s.StartTime.DeepCopy()
	out.EndTime = s.EndTime.DeepCopy()
	out.ExitCode, out.Signal = copied(s.ExitCode), copied(s.Signal)
	out.Tasks, out.Results = copied(s.Tasks), copied(s.Results)
	out.Conditions = slices.Clone(s.Conditions)
	for i := range out.Conditions {
		s.Conditions[i].DeepCopyInto(&out.Conditions[i])
	}
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}

// DeepCopy returns a copy that shares nothing with j.
func (j *GpuJob) DeepCopy() *GpuJob {
	if j == nil {
		return nil
	}
	out := &GpuJob{}
	j.DeepCopyInto(out)
	return out
}

// DeepCopyObject implements runtime.Object.
func (j *GpuJob) DeepCopyObject() runtime.Object {
	if j == nil {
		return nil
	}
	return j.DeepCopy()
}

// DeepCopyObject implements runtime.Object.
func (l *GpuJobList) DeepCopyObject() runtime.Object {
	if l == nil {
		return nil
	}
	out := &GpuJobList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	if l.Items != nil {
		out.Items = make([]GpuJob, len(l.Items))
		for i := range l.Items {
			l.Items[i].DeepCopyInto(&out.Items[i])
		}
	}
	return out
}

// DeepCopyInto copies c to out.
func (c *SlurmCluster) DeepCopyInto(out *SlurmCluster) {
	*out = *c
	c.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.HostKeys = slices.Clone(c.Spec.HostKeys)
	if c.Spec.Jump != nil {
		out.Spec.Jump = new(*c.Spec.Jump)
		out.Spec.Jump.HostKeys = slices.Clone(c.Spec.Jump.HostKeys)
	}
	out.Spec.Setup = slices.Clone(c.Spec.Setup)
	out.Spec.Defaults.Modules = slices.Clone(c.Spec.Defaults.Modules)
	out.Status.PresentedKeys = slices.Clone(c.Status.PresentedKeys)
	out.Status.Conditions = slices.Clone(c.Status.Conditions)
	for i := range out.Status.Conditions {
		c.Status.Conditions[i].DeepCopyInto(&out.Status.Conditions[i])
	}
}

// DeepCopy returns a copy that shares nothing with c.
func (c *SlurmCluster) DeepCopy() *SlurmCluster {
	if c == nil {
		return nil
	}
	out := &SlurmCluster{}
	c.DeepCopyInto(out)
	return out
}

// DeepCopyObject implements runtime.Object.
func (c *SlurmCluster) DeepCopyObject() runtime.Object {
	if c == nil {
		return nil
	}
	return c.DeepCopy()
}

// DeepCopyObject implements runtime.Object.
func (l *SlurmClusterList) DeepCopyObject() runtime.Object {
	if l == nil {
		return nil
	}
	out := &SlurmClusterList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	if l.Items != nil {
		out.Items = make([]SlurmCluster, len(l.Items))
		for i := range l.Items {
			l.Items[i].DeepCopyInto(&out.Items[i])
		}
	}
	return out
}
