package strategy

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
	"minik8s/internal/api/defaults"
	"minik8s/internal/api/dialect"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/api/validation"
	"minik8s/internal/gpu/plan"
	"minik8s/internal/registry"
)

// gpuJobStrategy: the username and password of a manifest go into a Secret of the job.
func gpuJobStrategy() *registry.Strategy {
	return &registry.Strategy{
		Split:          splitLogin,
		Preview:        previewScript,
		Default:        onOne(defaults.GpuJob),
		Validate:       checkOne(validation.GpuJob),
		ValidateUpdate: checkStep(validation.GpuJobUpdate),
		ValidateStatus: checkStep(validation.GpuJobStatusUpdate),
		CopyStatus:     onStep(func(dst, src *minik8s.GpuJob) { dst.Status = src.Status }),
		SpecChanged:    specChanged(func(j *minik8s.GpuJob) any { return j.Spec }),
		Dialect:        dialect.For(api.GpuJobs),
	}
}

// splitLogin moves username and password into a Secret, and has the job name it. Later writes that have neither leave it as
// it is, also if they do not name it.
func splitLogin(obj, old api.Object) (*registry.Kept, field.ErrorList) {
	j := obj.(*minik8s.GpuJob)
	s, own := &j.Spec, minik8s.LoginSecretOf(j.Name)
	if s.Username == "" && s.Password == "" {
		if old != nil && s.LoginSecret == "" && old.(*minik8s.GpuJob).Spec.LoginSecret == own {
			s.LoginSecret = own
		}
		return nil, nil
	}
	errs := validation.GpuJobLogin(s)
	if s.LoginSecret != "" && s.LoginSecret != own {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "loginSecret"), "may not be set beside username and password, which are moved into Secret "+own))
	}
	login := map[string][]byte{corev1.BasicAuthUsernameKey: []byte(s.Username), corev1.BasicAuthPasswordKey: []byte(s.Password)}
	s.LoginSecret, s.Username, s.Password = own, "", ""
	return &registry.Kept{Kind: api.Secrets, Name: own, Fill: func(obj api.Object) {
		secret := obj.(*corev1.Secret)
		secret.Type, secret.Data = corev1.SecretTypeBasicAuth, login
	}}, errs
}

// previewScript shows the batch script. A job that names no cluster, and whose namespace has none, is shown without what a cluster adds.
func previewScript(obj api.Object, others registry.Lister) {
	j := obj.(*minik8s.GpuJob)
	specs, names := map[string]*minik8s.SlurmClusterSpec{}, []string(nil)
	for _, o := range others.List(api.SlurmClusters) {
		if o.GetNamespace() == j.Namespace {
			names = append(names, o.GetName())
			specs[o.GetName()] = &o.(*minik8s.SlurmCluster).Spec
		}
	}
	spec := &minik8s.SlurmClusterSpec{}
	if name, err := plan.Choose(j, names); err == nil && specs[name] != nil {
		spec = specs[name]
	}
	text, err := plan.Text(j, spec)
	if err != nil {
		text = err.Error()
	}
	j.Status.Script = text
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
