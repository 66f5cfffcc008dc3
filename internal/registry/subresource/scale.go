package subresource

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"minik8s/internal/api"
	"minik8s/internal/registry"
)

// scales is the kind of the body of the subresource scale.
var scales = &api.Kind{Group: "autoscaling", Version: "v1", Kind: "Scale", Plural: "scales", Singular: "scale",
	Namespaced: true, New: func() api.Object { return &autoscalingv1.Scale{} }}

// Scale reads and sets the number of replicas of a kind: deployments/scale. of returns where an object keeps the
// wanted number, and the status of its Scale.
func Scale[T api.Object](of func(obj T) (replicas **int32, status autoscalingv1.ScaleStatus)) registry.Subresource {
	return registry.Subresource{Form: &registry.Form{
		Kind: scales,
		Show: func(obj api.Object) api.Object {
			replicas, status := of(obj.(T))
			s := &autoscalingv1.Scale{Status: status}
			if *replicas != nil {
				s.Spec.Replicas = **replicas
			}
			return s
		},
		Take: func(obj, given api.Object) field.ErrorList {
			n := given.(*autoscalingv1.Scale).Spec.Replicas
			if n < 0 {
				return field.ErrorList{field.Invalid(field.NewPath("spec", "replicas"), n, "must be greater than or equal to 0")}
			}
			replicas, _ := of(obj.(T))
			*replicas = &n
			return nil
		},
	}}
}
