package decide

import (
	"fmt"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// condition sets a condition of the status. When its status changes, now is the time of that.
func (d *Decision) condition(now time.Time, of autoscalingv2.HorizontalPodAutoscalerConditionType, is bool, reason, format string, args ...any) {
	c := find(d.Status.Conditions, of)
	if c == nil {
		d.Status.Conditions = append(d.Status.Conditions, autoscalingv2.HorizontalPodAutoscalerCondition{Type: of})
		c = &d.Status.Conditions[len(d.Status.Conditions)-1]
	}
	status := corev1.ConditionFalse
	if is {
		status = corev1.ConditionTrue
	}
	if c.Status != status {
		c.LastTransitionTime = metav1.NewTime(now)
	}
	c.Status, c.Reason, c.Message = status, reason, fmt.Sprintf(format, args...)
}

func find(list []autoscalingv2.HorizontalPodAutoscalerCondition, of autoscalingv2.HorizontalPodAutoscalerConditionType) *autoscalingv2.HorizontalPodAutoscalerCondition {
	for i := range list {
		if list[i].Type == of {
			return &list[i]
		}
	}
	return nil
}

// toZero reports whether the autoscaler itself has taken the last pod away.
func toZero(h *autoscalingv2.HorizontalPodAutoscaler) bool {
	c := find(h.Status.Conditions, autoscalingv2.ScaledToZero)
	return c != nil && c.Status == corev1.ConditionTrue
}

// fromZero reports whether the autoscaler has a metric that is there without pods.
func fromZero(h *autoscalingv2.HorizontalPodAutoscaler) bool {
	for i := range h.Spec.Metrics {
		if t := h.Spec.Metrics[i].Type; t == autoscalingv2.ObjectMetricSourceType || t == autoscalingv2.ExternalMetricSourceType {
			return true
		}
	}
	return false
}
