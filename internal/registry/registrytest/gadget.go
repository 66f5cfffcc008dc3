package registrytest

import (
	"context"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
	"minik8s/internal/registry"
)

// Gadgets is a kind that is not in the table at start. Tests add it while a cluster runs.
var Gadgets = &api.Kind{
	Group: "test.minik8s.io", Version: "v1", Kind: "Gadget", Plural: "gadgets", Singular: "gadget", ShortNames: []string{"gd"}, Namespaced: true,
	Subresources: []api.Subresource{{Name: "paint", Verbs: []string{"create"}}},
	New:          func() api.Object { return &Gadget{} },
	NewList:      func() runtime.Object { return nil },
}

// GadgetStrategy is the row of the kind. The action paint gives a gadget the colours of its body.
func GadgetStrategy() *registry.Strategy {
	return &registry.Strategy{Subresources: map[string]registry.Subresource{"paint": {
		Part: func(obj, given api.Object) field.ErrorList {
			obj.(*Gadget).Colours = given.(*Gadget).Colours
			return nil
		},
		Action: &registry.Action{
			Body: func() runtime.Object { return &Gadget{} },
			Do: func(ctx context.Context, o registry.Objects, q *registry.Request, body runtime.Object, opts registry.WriteOptions) (runtime.Object, error) {
				painted, err := o.Modify(ctx, q, opts, func(old api.Object) (api.Object, error) {
					g := old.DeepCopyObject().(*Gadget)
					g.Colours = body.(*Gadget).Colours
					return g, nil
				})
				return painted, err
			},
		},
	}}}
}

// Gadget is an object of the kind. Its fields are not in the order in which objects are stored.
type Gadget struct {
	Colours           map[string]string `json:"colours,omitempty"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	metav1.TypeMeta   `json:",inline"`
}

// APIKind implements api.HasKind.
func (g *Gadget) APIKind() *api.Kind { return Gadgets }

// DeepCopyObject implements runtime.Object.
func (g *Gadget) DeepCopyObject() runtime.Object {
	return &Gadget{TypeMeta: g.TypeMeta, ObjectMeta: *g.ObjectMeta.DeepCopy(), Colours: maps.Clone(g.Colours)}
}
