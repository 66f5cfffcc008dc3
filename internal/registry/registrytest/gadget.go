package registrytest

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"minik8s/internal/api"
)

// Gadgets is a kind that is not in the table at start. Tests add it while a cluster runs.
var Gadgets = &api.Kind{
	Group: "test.minik8s.io", Version: "v1", Kind: "Gadget", Plural: "gadgets", Singular: "gadget", ShortNames: []string{"gd"}, Namespaced: true,
	New:     func() api.Object { return &Gadget{} },
	NewList: func() runtime.Object { return nil },
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
