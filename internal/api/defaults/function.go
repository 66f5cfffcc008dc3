package defaults

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"minik8s/internal/api/minik8s"
)

// Function sets how calls are shared among instances, how long things may take, and a limit of memory.
func Function(f *minik8s.Function) {
	s := &f.Spec
	set := func(field *int32, value int32) {
		if *field == 0 {
			*field = value
		}
	}
	if s.Version == "" {
		s.Version = minik8s.FunctionV2
	}
	if s.Retry == "" {
		s.Retry = minik8s.RetryWhenUnsent
	}
	if s.Image != "" {
		set(&s.Port, minik8s.FunctionPort)
	}
	set(&s.TimeoutSeconds, 60)
	set(&s.Concurrency, 10)
	set(&s.TargetConcurrency, max(1, s.Concurrency*7/10))
	set(&s.MaxInstances, max(10, s.MinInstances, s.InitialInstances))
	set(&s.IdleSeconds, 60)
	set(&s.ResultSeconds, 3600)
	if _, ok := s.Resources.Limits[corev1.ResourceMemory]; !ok { // one function's mistake is not the machine's
		limits := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")}
		for name, q := range s.Resources.Limits {
			limits[name] = q
		}
		s.Resources.Limits = limits
	}
	if _, ok := s.Resources.Requests[corev1.ResourceMemory]; !ok { // otherwise it would be the limit
		requests := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("16Mi")}
		for name, q := range s.Resources.Requests {
			requests[name] = q
		}
		s.Resources.Requests = requests
	}
}
