package objectmetrics

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
)

type autoscaler = *autoscalingv2.HorizontalPodAutoscaler

var autoscalers = of[autoscaler]{"horizontalpodautoscalers.autoscaling", named[autoscaler]("horizontalpodautoscaler"), []family[autoscaler]{
	gauge("kube_horizontalpodautoscaler_info", "Information about this autoscaler.", func(p page, h autoscaler) {
		to := &h.Spec.ScaleTargetRef
		p.put(1, "scaletargetref_api_version", to.APIVersion, "scaletargetref_kind", to.Kind, "scaletargetref_name", to.Name)
	}),
	created[autoscaler]("kube_horizontalpodautoscaler"),
	generation[autoscaler]("kube_horizontalpodautoscaler"),
	value("kube_horizontalpodautoscaler_spec_max_replicas", "Upper limit for the number of pods that can be set by the autoscaler; cannot be smaller than MinReplicas.",
		func(h autoscaler) float64 { return float64(h.Spec.MaxReplicas) }),
	value("kube_horizontalpodautoscaler_spec_min_replicas", "Lower limit for the number of pods that can be set by the autoscaler, default 1.",
		func(h autoscaler) float64 {
			if h.Spec.MinReplicas == nil {
				return 1
			}
			return number(h.Spec.MinReplicas)
		}),
	gauge("kube_horizontalpodautoscaler_spec_target_metric", "The metric specifications used by this autoscaler when calculating the desired replica count.", func(p page, h autoscaler) {
		seen := map[string]bool{} // two metrics may have one name
		for i := range h.Spec.Metrics {
			name, t := wanted(&h.Spec.Metrics[i])
			if t != nil && !seen[name] {
				seen[name] = true
				p.metric(name, t.Value, t.AverageValue, t.AverageUtilization)
			}
		}
	}),
	gauge("kube_horizontalpodautoscaler_status_target_metric", "The current metric status used by this autoscaler when calculating the desired replica count.", func(p page, h autoscaler) {
		seen := map[string]bool{}
		for i := range h.Status.CurrentMetrics {
			name, v := current(&h.Status.CurrentMetrics[i])
			if v != nil && !seen[name] {
				seen[name] = true
				p.metric(name, v.Value, v.AverageValue, v.AverageUtilization)
			}
		}
	}),
	value("kube_horizontalpodautoscaler_status_current_replicas", "Current number of replicas of pods managed by this autoscaler.",
		func(h autoscaler) float64 { return float64(h.Status.CurrentReplicas) }),
	value("kube_horizontalpodautoscaler_status_desired_replicas", "Desired number of replicas of pods managed by this autoscaler.",
		func(h autoscaler) float64 { return float64(h.Status.DesiredReplicas) }),
	gauge("kube_horizontalpodautoscaler_status_condition", "The condition of this autoscaler.", func(p page, h autoscaler) {
		for i := range h.Status.Conditions {
			p.condition(string(h.Status.Conditions[i].Type), h.Status.Conditions[i].Status)
		}
	}),
}}

// wanted is the name and the target of a metric; nil: it has no part for its type.
func wanted(m *autoscalingv2.MetricSpec) (string, *autoscalingv2.MetricTarget) {
	switch {
	case m.Object != nil:
		return m.Object.Metric.Name, &m.Object.Target
	case m.Pods != nil:
		return m.Pods.Metric.Name, &m.Pods.Target
	case m.Resource != nil:
		return string(m.Resource.Name), &m.Resource.Target
	case m.ContainerResource != nil:
		return string(m.ContainerResource.Name), &m.ContainerResource.Target
	case m.External != nil:
		return m.External.Metric.Name, &m.External.Target
	}
	return "", nil
}

// current is the name and the value of a metric; nil: it has no part for its type.
func current(m *autoscalingv2.MetricStatus) (string, *autoscalingv2.MetricValueStatus) {
	switch {
	case m.Object != nil:
		return m.Object.Metric.Name, &m.Object.Current
	case m.Pods != nil:
		return m.Pods.Metric.Name, &m.Pods.Current
	case m.Resource != nil:
		return string(m.Resource.Name), &m.Resource.Current
	case m.ContainerResource != nil:
		return string(m.ContainerResource.Name), &m.ContainerResource.Current
	case m.External != nil:
		return m.External.Metric.Name, &m.External.Current
	}
	return "", nil
}

// metric adds a sample for each way in which a value is given.
func (p page) metric(name string, whole, average *resource.Quantity, percent *int32) {
	if whole != nil {
		p.put(whole.AsApproximateFloat64(), "metric_name", name, "metric_target_type", "value")
	}
	if average != nil {
		p.put(average.AsApproximateFloat64(), "metric_name", name, "metric_target_type", "average")
	}
	if percent != nil {
		p.put(float64(*percent), "metric_name", name, "metric_target_type", "utilization")
	}
}
