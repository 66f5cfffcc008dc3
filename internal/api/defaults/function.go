package defaults

import "minik8s/internal/api/minik8s"

// Function sets how calls are shared among instances, and how long things may take. The limit of memory comes with the instances: of thousands of
// functions at rest it would be most of what each costs.
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
}
