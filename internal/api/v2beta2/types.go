// Package v2beta2 has the Go types of autoscaling/v2beta2, which Kubernetes' own modules no longer have. Manifests of the
// second seed system are of that version.
//
// It promises: an object has the fields of autoscaling/v2, which are the same for all that v2beta2 could say. Package api
// serves the version as a view of autoscaling/v2, and alone imports it. It holds no state.
package v2beta2

import (
	"maps"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the kind.
var GroupVersion = schema.GroupVersion{Group: autoscalingv2.GroupName, Version: "v2beta2"}

// AddToScheme registers the types in a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &HorizontalPodAutoscaler{}, &HorizontalPodAutoscalerList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// HorizontalPodAutoscaler keeps the number of a workload's pods in step with metrics.
type HorizontalPodAutoscaler struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   autoscalingv2.HorizontalPodAutoscalerSpec   `json:"spec,omitempty"`
	Status autoscalingv2.HorizontalPodAutoscalerStatus `json:"status,omitempty"`
}

// HorizontalPodAutoscalerList is a list of them.
type HorizontalPodAutoscalerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []HorizontalPodAutoscaler `json:"items"`
}

// SwaggerDoc returns the text for `kubectl explain`.
func (HorizontalPodAutoscaler) SwaggerDoc() map[string]string {
	doc := maps.Clone(autoscalingv2.HorizontalPodAutoscaler{}.SwaggerDoc())
	doc[""] += " This is an old version of the kind: use autoscaling/v2."
	return doc
}

// DeepCopyInto copies h to out.
func (h *HorizontalPodAutoscaler) DeepCopyInto(out *HorizontalPodAutoscaler) {
	*out = *h
	h.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	h.Spec.DeepCopyInto(&out.Spec)
	h.Status.DeepCopyInto(&out.Status)
}

// DeepCopyObject implements runtime.Object.
func (h *HorizontalPodAutoscaler) DeepCopyObject() runtime.Object {
	if h == nil {
		return nil
	}
	out := &HorizontalPodAutoscaler{}
	h.DeepCopyInto(out)
	return out
}

// DeepCopyObject implements runtime.Object.
func (l *HorizontalPodAutoscalerList) DeepCopyObject() runtime.Object {
	if l == nil {
		return nil
	}
	out := &HorizontalPodAutoscalerList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	if l.Items != nil {
		out.Items = make([]HorizontalPodAutoscaler, len(l.Items))
		for i := range l.Items {
			l.Items[i].DeepCopyInto(&out.Items[i])
		}
	}
	return out
}
