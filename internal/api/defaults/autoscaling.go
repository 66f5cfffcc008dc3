package defaults

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"minik8s/internal/api"
)

// Kubernetes' defaults for a behavior that is given in part. The window for scaling down stays open: it is a setting of
// the controller.
const (
	scaleUpPods   = 4
	scalePercent  = 100
	scalePeriod   = 15 // seconds
	scaleUpWindow = 0  // seconds
)

// HorizontalPodAutoscaler sets the defaults of an autoscaler: at least one pod, 80 % of the requested cpu; and if it has a
// behavior, for each way that it leaves open what there would be without one.
func HorizontalPodAutoscaler(h *autoscalingv2.HorizontalPodAutoscaler) {
	s := &h.Spec
	orSet(&s.MinReplicas, 1)
	if len(s.Metrics) == 0 {
		s.Metrics = []autoscalingv2.MetricSpec{api.CPUMetric(api.DefaultCPUUtilization)}
	}
	if s.Behavior == nil {
		return
	}
	whole := *s.Behavior // it may be shared with what another try begins from
	percent := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: scalePercent, PeriodSeconds: scalePeriod}
	pods := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy, Value: scaleUpPods, PeriodSeconds: scalePeriod}
	whole.ScaleUp = scalingRules(whole.ScaleUp, new(int32(scaleUpWindow)), pods, percent)
	whole.ScaleDown = scalingRules(whole.ScaleDown, nil, percent)
	s.Behavior = &whole
}

func scalingRules(given *autoscalingv2.HPAScalingRules, window *int32, policies ...autoscalingv2.HPAScalingPolicy) *autoscalingv2.HPAScalingRules {
	out := autoscalingv2.HPAScalingRules{}
	if given != nil {
		out = *given
	}
	orSet(&out.SelectPolicy, autoscalingv2.MaxChangePolicySelect)
	if out.StabilizationWindowSeconds == nil {
		out.StabilizationWindowSeconds = window
	}
	if out.Policies == nil {
		out.Policies = policies
	}
	return &out
}
