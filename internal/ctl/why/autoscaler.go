package why

import (
	"fmt"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api"
	"minik8s/internal/ctl/brief"
)

// explainAutoscaler says what an autoscaler did last: the sum that its controller wrote down, and its conditions.
func (s *situation) explainAutoscaler(h *autoscalingv2.HorizontalPodAutoscaler) Explanation {
	var v Explanation
	ref, st := h.Spec.ScaleTargetRef, h.Status
	target := strings.ToLower(ref.Kind) + "/" + ref.Name
	able, active, limited := hpaCondition(h, autoscalingv2.AbleToScale), hpaCondition(h, autoscalingv2.ScalingActive), hpaCondition(h, autoscalingv2.ScalingLimited)
	switch {
	case able == nil:
		v.Head = fmt.Sprintf("%s has not been looked at yet: is a master up that leads?", s.name())
		v.try("get pods -n kube-system")
	case able.Status == corev1.ConditionFalse:
		v.Head = fmt.Sprintf("%s cannot scale %s", s.name(), target)
		v.because("%s: %s", able.Reason, able.Message)
		v.try("get %s %s%s", strings.ToLower(ref.Kind), ref.Name, brief.Namespace(h.Namespace))
	case active != nil && active.Status == corev1.ConditionFalse:
		v.Head = fmt.Sprintf("%s does not know how many pods %s needs: it has %d", s.name(), target, st.CurrentReplicas)
		v.because("%s: %s", active.Reason, active.Message)
		s.unknownLoad(&v, h, active)
	case st.CurrentReplicas != st.DesiredReplicas:
		v.Good, v.Head = true, fmt.Sprintf("%s scaled %s from %d to %d", s.name(), target, st.CurrentReplicas, st.DesiredReplicas)
	default:
		v.Good, v.Head = true, fmt.Sprintf("%s keeps %s at %d pods", s.name(), target, st.CurrentReplicas)
	}
	if v.Good && able.Reason != "ReadyForNewScale" && able.Reason != "SucceededRescale" {
		v.because("%s: %s", able.Reason, able.Message)
	}
	if v.Good && limited != nil && limited.Status == corev1.ConditionTrue {
		v.because("%s: %s", limited.Reason, limited.Message)
	}
	if sum := h.Annotations[api.DecisionAnnotation]; sum != "" {
		v.fact("The last sum", strings.Split(sum, "\n"))
	}
	if t := st.LastScaleTime; t != nil {
		v.fact("Last scaled", []string{s.ago(t.Time)})
	}
	v.try("describe %s", s.args())
	return v
}

// unknownLoad says what to do about a load that is not known.
func (s *situation) unknownLoad(v *Explanation, h *autoscalingv2.HorizontalPodAutoscaler, active *autoscalingv2.HorizontalPodAutoscalerCondition) {
	ref := h.Spec.ScaleTargetRef
	switch {
	case strings.Contains(active.Message, "missing request"):
		v.advise("a utilization is a percentage of what the containers request: give each of %s %s a resources.requests, or say with the annotation %s=%s that it is one of a core",
			strings.ToLower(ref.Kind), ref.Name, api.UtilizationBasisAnnotation, api.BasisCapacity)
	case strings.Contains(active.Message, "metrics API: the server could not find the requested resource"):
		v.advise("nobody serves such metrics: give each master --prometheus with the URL of a Prometheus, or make an APIService that leads to another server")
	case strings.Contains(active.Message, "the server could not find the metric"):
		group := "custom.metrics.k8s.io/v1beta2"
		if active.Reason == "FailedGetExternalMetric" {
			group = "external.metrics.k8s.io/v1beta1"
		}
		v.advise("see which metrics there are: kubectl get --raw /apis/%s", group)
	case strings.Contains(active.Message, "Prometheus at "):
		v.advise("see that this Prometheus runs, and that the masters' --prometheus is its URL: nothing is scaled by what is not known")
	case active.Reason == "ScalingDisabled":
		v.try("scale %s %s --replicas %d%s", strings.ToLower(ref.Kind), ref.Name, max(1, leastPods(h)), brief.Namespace(h.Namespace))
	default:
		v.try("get pods%s", brief.Namespace(h.Namespace))
	}
}

func leastPods(h *autoscalingv2.HorizontalPodAutoscaler) int32 {
	if h.Spec.MinReplicas == nil {
		return 1
	}
	return *h.Spec.MinReplicas
}

func hpaCondition(h *autoscalingv2.HorizontalPodAutoscaler, of autoscalingv2.HorizontalPodAutoscalerConditionType) *autoscalingv2.HorizontalPodAutoscalerCondition {
	for i := range h.Status.Conditions {
		if h.Status.Conditions[i].Type == of {
			return &h.Status.Conditions[i]
		}
	}
	return nil
}
