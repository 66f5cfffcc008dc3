package api

import (
	"maps"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/runtime"

	"minik8s/internal/api/v2beta2"
)

// Annotations on a HorizontalPodAutoscaler by which it differs from Kubernetes'. The dialects of the two seed systems set
// the first three; anybody may.
const (
	// UtilizationBasisAnnotation says of what a utilization is a percentage: one of the Basis values. Without it it is of
	// what the pods request, as in Kubernetes.
	UtilizationBasisAnnotation = "minik8s.io/utilization-basis"
	// LeadingMetricAnnotation names a resource: the metric of that resource decides alone, as long as it is known. Without
	// it the metric that wants the most pods decides.
	LeadingMetricAnnotation = "minik8s.io/leading-metric"
	// SyncPeriodAnnotation is how often the metrics are looked at, as a duration ("10s"). Without it: as often as the
	// cluster's others.
	SyncPeriodAnnotation = "minik8s.io/sync-period"
	// DecisionAnnotation is written by the controller: the sum that it did last, in lines of text with its numbers.
	DecisionAnnotation = "minik8s.io/last-decision"
)

// The values of UtilizationBasisAnnotation.
const (
	// BasisCapacity: of one core for cpu; for memory of the pod's limit, or of the node's memory if it has none.
	BasisCapacity = "capacity"
	// BasisRequestsOrCapacity: of what the pods request, and of the capacity if one of them requests nothing.
	BasisRequestsOrCapacity = "requests-or-capacity"
)

// HorizontalPodAutoscalersV1 are HorizontalPodAutoscalers in the version that knows only a utilization of cpu. What it cannot
// say it keeps in annotations, under Kubernetes' names.
var HorizontalPodAutoscalersV1 = &Kind{
	Group: "autoscaling", Version: "v1", Kind: "HorizontalPodAutoscaler", Plural: "horizontalpodautoscalers", Singular: "horizontalpodautoscaler",
	ShortNames: []string{"hpa"}, Categories: []string{"all"}, Namespaced: true,
	Subresources: []Subresource{status},
	New:          func() Object { return &autoscalingv1.HorizontalPodAutoscaler{} },
	NewList:      func() runtime.Object { return &autoscalingv1.HorizontalPodAutoscalerList{} },
	View: &View{Of: HorizontalPodAutoscalers,
		Shown: func(obj Object) Object { return autoscalerV1(obj.(*autoscalingv2.HorizontalPodAutoscaler)) },
		Stored: func(obj Object) Object {
			return autoscalerOfV1(obj.(*autoscalingv1.HorizontalPodAutoscaler))
		}},
}

// HorizontalPodAutoscalersV2beta2 are HorizontalPodAutoscalers in the version of the second seed system's manifests.
var HorizontalPodAutoscalersV2beta2 = &Kind{
	Group: "autoscaling", Version: "v2beta2", Kind: "HorizontalPodAutoscaler", Plural: "horizontalpodautoscalers", Singular: "horizontalpodautoscaler",
	ShortNames: []string{"hpa"}, Categories: []string{"all"}, Namespaced: true,
	Subresources: []Subresource{status},
	New:          func() Object { return &v2beta2.HorizontalPodAutoscaler{} },
	NewList:      func() runtime.Object { return &v2beta2.HorizontalPodAutoscalerList{} },
	View: &View{Of: HorizontalPodAutoscalers,
		Shown: func(obj Object) Object {
			h := obj.(*autoscalingv2.HorizontalPodAutoscaler)
			return &v2beta2.HorizontalPodAutoscaler{ObjectMeta: h.ObjectMeta, Spec: h.Spec, Status: h.Status}
		},
		Stored: func(obj Object) Object {
			h := obj.(*v2beta2.HorizontalPodAutoscaler)
			return &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: h.ObjectMeta, Spec: h.Spec, Status: h.Status}
		}},
}

// Kubernetes' names of the annotations in which autoscaling/v1 keeps what it has no fields for.
const (
	metricsV1        = "autoscaling.alpha.kubernetes.io/metrics"
	currentMetricsV1 = "autoscaling.alpha.kubernetes.io/current-metrics"
	conditionsV1     = "autoscaling.alpha.kubernetes.io/conditions"
	behaviorV1       = "autoscaling.alpha.kubernetes.io/behavior"
)

// MetricsV1Annotation and BehaviorV1Annotation are those of them that say what is wanted.
const (
	MetricsV1Annotation  = metricsV1
	BehaviorV1Annotation = behaviorV1
)

// withoutV1 returns annotations without those that only autoscaling/v1 has. The map is new if it differs.
func withoutV1(annotations map[string]string) map[string]string {
	names := []string{metricsV1, currentMetricsV1, conditionsV1, behaviorV1,
		"autoscaling.alpha.kubernetes.io/scale-down-tolerance", "autoscaling.alpha.kubernetes.io/scale-up-tolerance"}
	out := annotations
	for _, name := range names {
		if _, ok := out[name]; !ok {
			continue
		}
		if len(out) == len(annotations) {
			out = maps.Clone(annotations)
		}
		delete(out, name)
	}
	return out
}
