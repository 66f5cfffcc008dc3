package strategy

import (
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
// And it reads the objects whose changes call the function. That is judged with any change of the specification, since whoever changes the
// program gets to see what is sent to it.
func functionNeeds(obj, old api.Object, kinds *api.Table) (needs []registry.Needed) {
	f := obj.(*minik8s.Function)
	var was minik8s.FunctionSpec
	if old != nil {
		was = old.(*minik8s.Function).Spec
	}
	if f.Spec.Address != "" && f.Spec.Address != was.Address {
		needs = append(needs, registry.Needed{Verb: "create", Kind: api.Services, Namespace: f.Namespace, For: "spec.address"})
	}
	if old != nil && apiequality.Semantic.DeepEqual(f.Spec, was) {
		return needs
	}
	for i, t := range f.Spec.Triggers {
		if t.Object == nil {
			continue
		}
		n := registry.Needed{Kind: kinds.ByGVK(schema.FromAPIVersionAndKind(t.Object.APIVersion, t.Object.Kind)), For: fmt.Sprintf("spec.triggers[%d].object", i)}
		if n.Kind != nil && n.Kind.Namespaced && !t.Object.AllNamespaces {
			n.Namespace = f.Namespace
		}
		for _, n.Verb = range []string{"list", "watch"} {
			needs = append(needs, n)
		}
	}
	return needs
}

// callsFunctions is for kinds whose objects have a part call functions of their namespace. changed says whether an update makes it call
// others; nil: none does. of is the field that names them.
func callsFunctions(of string, changed func(obj, old api.Object) bool) func(obj, old api.Object, kinds *api.Table) []registry.Needed {
	return func(obj, old api.Object, _ *api.Table) []registry.Needed {
		if old != nil && (changed == nil || !changed(obj, old)) {
			return nil
		}
		return []registry.Needed{{Verb: "create", Kind: api.Functions, Sub: minik8s.FunctionCallSubresource, Namespace: obj.GetNamespace(), For: of}}
	}
}

// functionController is the part's name.
const functionController = "function-controller"

func functionCallStrategy() *registry.Strategy {
	return &registry.Strategy{
		// The function controller makes a call and begins it by one write. What others say of its status does not count.
		BornWithStatus: true,
		Needs:          callsFunctions("spec.function", nil),
		Author: func(obj, old api.Object, by registry.User) {
			if old == nil && by.Name != registry.Part(functionController).Name {
				obj.(*minik8s.FunctionCall).Status = minik8s.FunctionCallStatus{}
			}
		},
		Validate:       checkOne(validation.FunctionCall),
		ValidateUpdate: checkStep(validation.FunctionCallUpdate),
		ValidateStatus: checkStep(validation.FunctionCallStatusUpdate),
		CopyStatus:     onStep(func(dst, src *minik8s.FunctionCall) { dst.Status = src.Status }),
		SpecChanged:    specChanged(func(c *minik8s.FunctionCall) any { return c.Spec }),
	}
}
