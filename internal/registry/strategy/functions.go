package strategy

import (
	"minik8s/internal/api"
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
		Needs:          functionNeeds,
	}
}

// functionNeeds is what the function controller does for who writes a Function: it makes a Service.
func functionNeeds(obj, old api.Object, _ *api.Table) (needs []registry.Needed) {
	f := obj.(*minik8s.Function)
	var was minik8s.FunctionSpec
	if old != nil {
		was = old.(*minik8s.Function).Spec
	}
	if f.Spec.Address != "" && f.Spec.Address != was.Address {
		needs = append(needs, registry.Needed{Verb: "create", Kind: api.Services, Namespace: f.Namespace, For: "spec.address"})
	}
	return needs
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
