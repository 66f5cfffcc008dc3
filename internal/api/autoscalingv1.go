package api

import (
	"encoding/json"
	"maps"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// DefaultCPUUtilization is the target of an autoscaler without metrics, in percent.
const DefaultCPUUtilization = 80

// cpuUtilization returns the target of a metric that autoscaling/v1 has a field for; nil for any other.
func cpuUtilization(m *autoscalingv2.MetricSpec) *int32 {
	if m.Type == autoscalingv2.ResourceMetricSourceType && m.Resource != nil && m.Resource.Name == corev1.ResourceCPU {
		return m.Resource.Target.AverageUtilization
	}
	return nil
}

// autoscalerV1 is an autoscaler as autoscaling/v1 shows it.
func autoscalerV1(h *autoscalingv2.HorizontalPodAutoscaler) *autoscalingv1.HorizontalPodAutoscaler {
	out := &autoscalingv1.HorizontalPodAutoscaler{ObjectMeta: h.ObjectMeta,
		Spec: autoscalingv1.HorizontalPodAutoscalerSpec{ScaleTargetRef: autoscalingv1.CrossVersionObjectReference(h.Spec.ScaleTargetRef),
			MinReplicas: h.Spec.MinReplicas, MaxReplicas: h.Spec.MaxReplicas},
		Status: autoscalingv1.HorizontalPodAutoscalerStatus{ObservedGeneration: h.Status.ObservedGeneration, LastScaleTime: h.Status.LastScaleTime,
			CurrentReplicas: h.Status.CurrentReplicas, DesiredReplicas: h.Status.DesiredReplicas}}
	notes := map[string]string{}
	note := func(name string, there bool, value any) {
		if !there {
			return
		}
		if data, err := json.Marshal(value); err == nil {
			notes[name] = string(data)
		}
	}
	var metrics []autoscalingv1.MetricSpec
	for i := range h.Spec.Metrics {
		m := &h.Spec.Metrics[i]
		switch target := cpuUtilization(m); {
		case target == nil:
			metrics = append(metrics, metricV1(m))
		case out.Spec.TargetCPUUtilizationPercentage == nil:
			out.Spec.TargetCPUUtilizationPercentage = new(*target)
		}
	}
	statuses := make([]autoscalingv1.MetricStatus, len(h.Status.CurrentMetrics))
	for i := range h.Status.CurrentMetrics {
		m := &h.Status.CurrentMetrics[i]
		statuses[i] = metricStatusV1(m)
		if r := m.Resource; m.Type == autoscalingv2.ResourceMetricSourceType && r != nil && r.Name == corev1.ResourceCPU && r.Current.AverageUtilization != nil {
			out.Status.CurrentCPUUtilizationPercentage = new(*r.Current.AverageUtilization)
		}
	}
	conditions := make([]autoscalingv1.HorizontalPodAutoscalerCondition, len(h.Status.Conditions))
	for i, c := range h.Status.Conditions {
		conditions[i] = conditionV1(c)
	}
	note(metricsV1, len(metrics) > 0, metrics)
	note(currentMetricsV1, len(statuses) > 0, statuses)
	note(conditionsV1, len(conditions) > 0, conditions)
	if h.Spec.Behavior != nil {
		note(behaviorV1, true, behaviorOf(h.Spec.Behavior))
	}
	if out.Annotations = withoutV1(h.Annotations); len(notes) > 0 {
		all := maps.Clone(out.Annotations)
		if all == nil {
			all = map[string]string{}
		}
		maps.Copy(all, notes)
		out.Annotations = all
	}
	return out
}

// autoscalerOfV1 is the stored form of an autoscaler in autoscaling/v1. An annotation that cannot be read counts for
// nothing, as in Kubernetes.
func autoscalerOfV1(h *autoscalingv1.HorizontalPodAutoscaler) *autoscalingv2.HorizontalPodAutoscaler {
	out := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: h.ObjectMeta,
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{ScaleTargetRef: autoscalingv2.CrossVersionObjectReference(h.Spec.ScaleTargetRef),
			MinReplicas: h.Spec.MinReplicas, MaxReplicas: h.Spec.MaxReplicas},
		Status: autoscalingv2.HorizontalPodAutoscalerStatus{ObservedGeneration: h.Status.ObservedGeneration, LastScaleTime: h.Status.LastScaleTime,
			CurrentReplicas: h.Status.CurrentReplicas, DesiredReplicas: h.Status.DesiredReplicas}}
	read := func(name string, into any) bool {
		text, ok := h.Annotations[name]
		return ok && json.Unmarshal([]byte(text), into) == nil
	}
	var metrics []autoscalingv1.MetricSpec
	if read(metricsV1, &metrics) {
		for i := range metrics {
			out.Spec.Metrics = append(out.Spec.Metrics, metricOfV1(&metrics[i]))
		}
	}
	if target := h.Spec.TargetCPUUtilizationPercentage; target != nil {
		out.Spec.Metrics = append(out.Spec.Metrics, CPUMetric(*target))
	}
	if len(out.Spec.Metrics) == 0 {
		out.Spec.Metrics = []autoscalingv2.MetricSpec{CPUMetric(DefaultCPUUtilization)}
	}
	var behavior autoscalingv2.HorizontalPodAutoscalerBehavior // the annotation's capital letters make no difference when read
	if read(behaviorV1, &behavior) && (behavior.ScaleUp != nil || behavior.ScaleDown != nil) {
		out.Spec.Behavior = &behavior
	}
	if current := h.Status.CurrentCPUUtilizationPercentage; current != nil {
		out.Status.CurrentMetrics = []autoscalingv2.MetricStatus{{Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricStatus{Name: corev1.ResourceCPU, Current: autoscalingv2.MetricValueStatus{AverageUtilization: new(*current)}}}}
	}
	var statuses []autoscalingv1.MetricStatus
	if read(currentMetricsV1, &statuses) {
		out.Status.CurrentMetrics = make([]autoscalingv2.MetricStatus, len(statuses))
		for i := range statuses {
			out.Status.CurrentMetrics[i] = metricStatusOfV1(&statuses[i])
		}
	}
	var conditions []autoscalingv1.HorizontalPodAutoscalerCondition
	if read(conditionsV1, &conditions) {
		for _, c := range conditions {
			out.Status.Conditions = append(out.Status.Conditions, conditionOfV1(c))
		}
	}
	out.Annotations = withoutV1(h.Annotations)
	return out
}

// CPUMetric is the metric of a utilization of cpu, in percent.
func CPUMetric(percent int32) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU,
		Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent}}}
}

func conditionV1(c autoscalingv2.HorizontalPodAutoscalerCondition) autoscalingv1.HorizontalPodAutoscalerCondition {
	return autoscalingv1.HorizontalPodAutoscalerCondition{Type: autoscalingv1.HorizontalPodAutoscalerConditionType(c.Type), Status: c.Status,
		LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message, ObservedGeneration: c.ObservedGeneration}
}

func conditionOfV1(c autoscalingv1.HorizontalPodAutoscalerCondition) autoscalingv2.HorizontalPodAutoscalerCondition {
	return autoscalingv2.HorizontalPodAutoscalerCondition{Type: autoscalingv2.HorizontalPodAutoscalerConditionType(c.Type), Status: c.Status,
		LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message, ObservedGeneration: c.ObservedGeneration}
}

// The behavior annotation has the fields' names in capital letters, in Kubernetes too.
type (
	behaviorNote struct{ ScaleUp, ScaleDown *rulesNote }
	rulesNote    struct {
		StabilizationWindowSeconds *int32
		SelectPolicy               *autoscalingv2.ScalingPolicySelect
		Policies                   []policyNote
		Tolerance                  *resource.Quantity
	}
	policyNote struct {
		Type                 autoscalingv2.HPAScalingPolicyType
		Value, PeriodSeconds int32
	}
)

func behaviorOf(b *autoscalingv2.HorizontalPodAutoscalerBehavior) behaviorNote {
	return behaviorNote{rulesOf(b.ScaleUp), rulesOf(b.ScaleDown)}
}

func rulesOf(r *autoscalingv2.HPAScalingRules) *rulesNote {
	if r == nil {
		return nil
	}
	out := &rulesNote{StabilizationWindowSeconds: r.StabilizationWindowSeconds, SelectPolicy: r.SelectPolicy, Tolerance: r.Tolerance}
	for _, p := range r.Policies {
		out.Policies = append(out.Policies, policyNote{p.Type, p.Value, p.PeriodSeconds})
	}
	return out
}
