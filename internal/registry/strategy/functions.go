package strategy

import (
	"minik8s/internal/api/defaults"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/api/validation"
	"minik8s/internal/registry"
)

func functionStrategy() *registry.Strategy {
	return &registry.Strategy{
		Default:        onOne(defaults.Function),
		Validate:       checkOne(validation.Function),
		ValidateStatus: checkStep(validation.FunctionStatusUpdate),
		CopyStatus:     onStep(func(dst, src *minik8s.Function) { dst.Status = src.Status }),
		SpecChanged:    specChanged(func(f *minik8s.Function) any { return f.Spec }),
	}
}

func functionCallStrategy() *registry.Strategy {
	return &registry.Strategy{
		Validate:       checkOne(validation.FunctionCall),
		ValidateUpdate: checkStep(validation.FunctionCallUpdate),
		ValidateStatus: checkStep(validation.FunctionCallStatusUpdate),
		CopyStatus:     onStep(func(dst, src *minik8s.FunctionCall) { dst.Status = src.Status }),
		SpecChanged:    specChanged(func(c *minik8s.FunctionCall) any { return c.Spec }),
	}
}
