package describe

import (
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"minik8s/internal/api"
	"minik8s/internal/api/table"
	"minik8s/internal/ctl/session"
)

func writeAutoscaler(s *session.Session, out *sheet, h *autoscalingv2.HorizontalPodAutoscaler) {
	ref := h.Spec.ScaleTargetRef
	out.field("Reference", ref.Kind+"/"+ref.Name)
	var metrics []string
	for i := range h.Spec.Metrics {
		var current autoscalingv2.MetricStatus
		if i < len(h.Status.CurrentMetrics) {
			current = h.Status.CurrentMetrics[i]
		}
		metrics = append(metrics, string(h.Spec.Metrics[i].Type)+"  "+table.MetricText(&h.Spec.Metrics[i], &current))
	}
	out.lines("Metrics", metrics)
	if basis := h.Annotations[api.UtilizationBasisAnnotation]; basis != "" {
		out.field("Percent of", basis)
	}
	least := int32(1)
	if h.Spec.MinReplicas != nil {
		least = *h.Spec.MinReplicas
	}
	out.field("Replicas", fmt.Sprintf("%d current, %d desired; at least %d, at most %d", h.Status.CurrentReplicas, h.Status.DesiredReplicas, least, h.Spec.MaxReplicas))
	if b := h.Spec.Behavior; b != nil {
		out.line("Behavior:")
		writeRules(out, "scale up", b.ScaleUp)
		writeRules(out, "scale down", b.ScaleDown)
	}
	if t := h.Status.LastScaleTime; t != nil {
		out.field("Last Scaled", s.When(*t))
	}
	var conditions []string
	for _, c := range h.Status.Conditions {
		conditions = append(conditions, fmt.Sprintf("%-14s %-6s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	out.lines("Conditions", conditions)
	if sum := h.Annotations[api.DecisionAnnotation]; sum != "" {
		out.line("The last sum:")
		out.block("  ", sum)
	}
}

func writeRules(out *sheet, way string, r *autoscalingv2.HPAScalingRules) {
	if r == nil {
		return
	}
	text := way + ": "
	if r.StabilizationWindowSeconds != nil {
		text += fmt.Sprintf("window %d s, ", *r.StabilizationWindowSeconds)
	}
	if r.SelectPolicy != nil {
		text += fmt.Sprintf("select %s of ", *r.SelectPolicy)
	}
	for i, p := range r.Policies {
		if i > 0 {
			text += ", "
		}
		unit := " pods"
		if p.Type == autoscalingv2.PercentScalingPolicy {
			unit = " %"
		}
		text += fmt.Sprintf("%d%s in %d s", p.Value, unit, p.PeriodSeconds)
	}
	if r.Tolerance != nil {
		text += ", tolerance " + r.Tolerance.String()
	}
	out.line("  %s", text)
}
