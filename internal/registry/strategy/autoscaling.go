package strategy

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"minik8s/internal/api"
	"minik8s/internal/api/defaults"
	"minik8s/internal/api/dialect"
	"minik8s/internal/api/podspec"
	"minik8s/internal/api/validation"
	"minik8s/internal/registry"
)

func horizontalPodAutoscalerStrategy() *registry.Strategy {
	return &registry.Strategy{
		Default:        onOne(defaults.HorizontalPodAutoscaler),
		ValidateCreate: checkOne(validation.HorizontalPodAutoscaler),
		ValidateUpdate: checkStep(validation.HorizontalPodAutoscalerUpdate),
		ValidateStatus: checkStep(validation.HorizontalPodAutoscalerStatusUpdate),
		Warnings:       autoscalerWarnings,
		CopyStatus:     onStep(func(dst, src *autoscalingv2.HorizontalPodAutoscaler) { dst.Status = src.Status }),
		SpecChanged:    specChanged(func(h *autoscalingv2.HorizontalPodAutoscaler) any { return h.Spec }),
		Dialect:        dialect.For(api.HorizontalPodAutoscalers),
	}
}

// autoscalerWarnings says when a utilization has nothing that it could be a percentage of: the target's pods do not say what
// they request.
func autoscalerWarnings(obj api.Object, others registry.Lister) []string {
	h := obj.(*autoscalingv2.HorizontalPodAutoscaler)
	basis := h.Annotations[api.UtilizationBasisAnnotation]
	if basis == api.BasisCapacity {
		return nil
	}
	ref := h.Spec.ScaleTargetRef
	kind := api.ByGVK(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	if kind == nil || !kind.Namespaced {
		return nil
	}
	target := others.Get(kind, h.Namespace, ref.Name)
	if target == nil {
		return nil
	}
	pods := templateOf(target)
	if pods == nil {
		return nil
	}
	var out []string
	for i := range h.Spec.Metrics {
		r := h.Spec.Metrics[i].Resource
		if r == nil || r.Target.AverageUtilization == nil {
			continue
		}
		if _, err := podspec.ScalingRequest("", &pods.Spec, "", r.Name); err == nil {
			continue
		}
		text := "the controller cannot compute a utilization until they do"
		if basis == api.BasisRequestsOrCapacity {
			text = "the utilization is that of " + capacityWords(r.Name)
		}
		out = append(out, fmt.Sprintf("spec.metrics[%d].resource: the pods of %s %q do not all request %s: %s", i, ref.Kind, ref.Name, r.Name, text))
	}
	return out
}

// templateOf returns the template of a workload's pods; nil if it has none.
func templateOf(obj api.Object) *corev1.PodTemplateSpec {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return &o.Spec.Template
	case *appsv1.ReplicaSet:
		return &o.Spec.Template
	case *corev1.ReplicationController:
		return o.Spec.Template
	}
	return nil
}

// capacityWords says what a utilization is a percentage of where pods request nothing.
func capacityWords(name corev1.ResourceName) string {
	if name == corev1.ResourceCPU {
		return "one core"
	}
	return "their limit, or of their node's " + string(name)
}
