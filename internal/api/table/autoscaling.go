package table

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// shownMetrics is how many metrics are shown; of more it is said how many there are.
const shownMetrics = 2

const unknown = "<unknown>"

// autoscalerColumns are kubectl's, and in wide output what the controller wants and why.
var autoscalerColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name must be unique within a namespace."},
	words("Reference", "What is scaled."),
	words("Targets", "The metrics: measured and wanted."),
	words("MinPods", "The fewest pods."),
	words("MaxPods", "The most pods."),
	words("Replicas", "How many pods there were when the metrics were last looked at."),
	{Name: "Age", Type: "string", Description: "The time since the object was created."},
	{Name: "Desired", Type: "integer", Priority: 1, Description: "How many pods are wanted since then."},
	{Name: "Condition", Type: "string", Priority: 1, Description: "What keeps it from scaling, or limits it."},
	{Name: "Last Scale", Type: "string", Priority: 1, Description: "The time since it last changed the number of pods."},
}

func autoscalerRow(h *autoscalingv2.HorizontalPodAutoscaler, now time.Time) []any {
	last := none
	if t := h.Status.LastScaleTime; t != nil {
		last = since(t.Time, now)
	}
	return []any{h.Name, scaleTarget(h), metricsText(h), leastPods(h), int64(h.Spec.MaxReplicas), int64(h.Status.CurrentReplicas),
		since(h.CreationTimestamp.Time, now), int64(h.Status.DesiredReplicas), or(autoscalerState(h), none), last}
}

func scaleTarget(h *autoscalingv2.HorizontalPodAutoscaler) string {
	return h.Spec.ScaleTargetRef.Kind + "/" + h.Spec.ScaleTargetRef.Name
}

func leastPods(h *autoscalingv2.HorizontalPodAutoscaler) string {
	if h.Spec.MinReplicas == nil {
		return "<unset>"
	}
	return strconv.Itoa(int(*h.Spec.MinReplicas))
}

// autoscalerState is the reason of the condition that matters most: that it cannot scale, or is limited; empty if neither.
func autoscalerState(h *autoscalingv2.HorizontalPodAutoscaler) string {
	limited := ""
	for _, c := range h.Status.Conditions {
		switch {
		case c.Type == autoscalingv2.ScalingLimited && c.Status == corev1.ConditionTrue:
			limited = c.Reason
		case (c.Type == autoscalingv2.AbleToScale || c.Type == autoscalingv2.ScalingActive) && c.Status == corev1.ConditionFalse:
			return c.Reason
		}
	}
	return limited
}

// metricsText is what kubectl shows of an autoscaler's metrics: measured/wanted of each.
func metricsText(h *autoscalingv2.HorizontalPodAutoscaler) string {
	specs := h.Spec.Metrics
	if len(specs) == 0 {
		return none
	}
	var list []string
	for i := range specs[:min(len(specs), shownMetrics)] {
		var status autoscalingv2.MetricStatus
		if i < len(h.Status.CurrentMetrics) {
			status = h.Status.CurrentMetrics[i]
		}
		list = append(list, MetricText(&specs[i], &status))
	}
	text := strings.Join(list, ", ")
	if more := len(specs) - shownMetrics; more > 0 {
		text += fmt.Sprintf(" + %d more...", more)
	}
	return text
}

// MetricText is what kubectl shows of a metric: measured/wanted. s may be empty.
func MetricText(m *autoscalingv2.MetricSpec, s *autoscalingv2.MetricStatus) string {
	switch {
	case m.Type == autoscalingv2.ExternalMetricSourceType && m.External != nil:
		var current *autoscalingv2.MetricValueStatus
		if s.External != nil {
			current = &s.External.Current
		}
		return valueText(&m.External.Target, current)
	case m.Type == autoscalingv2.ObjectMetricSourceType && m.Object != nil:
		var current *autoscalingv2.MetricValueStatus
		if s.Object != nil {
			current = &s.Object.Current
		}
		return valueText(&m.Object.Target, current)
	case m.Type == autoscalingv2.PodsMetricSourceType && m.Pods != nil:
		var current *resource.Quantity
		if s.Pods != nil {
			current = s.Pods.Current.AverageValue
		}
		return quantityText(current) + "/" + quantityText(m.Pods.Target.AverageValue)
	case m.Type == autoscalingv2.ResourceMetricSourceType && m.Resource != nil:
		var current *autoscalingv2.MetricValueStatus
		if s.Resource != nil {
			current = &s.Resource.Current
		}
		return usageText(m.Resource.Name, &m.Resource.Target, current)
	case m.Type == autoscalingv2.ContainerResourceMetricSourceType && m.ContainerResource != nil:
		var current *autoscalingv2.MetricValueStatus
		if s.ContainerResource != nil {
			current = &s.ContainerResource.Current
		}
		return usageText(m.ContainerResource.Name, &m.ContainerResource.Target, current)
	}
	return "<unknown type>"
}

func valueText(target *autoscalingv2.MetricTarget, current *autoscalingv2.MetricValueStatus) string {
	if current == nil {
		current = &autoscalingv2.MetricValueStatus{}
	}
	if target.AverageValue != nil {
		return quantityText(current.AverageValue) + "/" + quantityText(target.AverageValue) + " (avg)"
	}
	return quantityText(current.Value) + "/" + quantityText(target.Value)
}

func usageText(name corev1.ResourceName, target *autoscalingv2.MetricTarget, current *autoscalingv2.MetricValueStatus) string {
	if current == nil {
		current = &autoscalingv2.MetricValueStatus{}
	}
	if target.AverageValue != nil {
		return fmt.Sprintf("%s: %s/%s", name, quantityText(current.AverageValue), quantityText(target.AverageValue))
	}
	return fmt.Sprintf("%s: %s/%s", name, percentText(current.AverageUtilization, unknown), percentText(target.AverageUtilization, "<auto>"))
}

func quantityText(q *resource.Quantity) string {
	if q == nil {
		return unknown
	}
	return q.String()
}

func percentText(n *int32, missing string) string {
	if n == nil {
		return missing
	}
	return fmt.Sprintf("%d%%", *n)
}

// The columns of the two seed systems.
var autoscalerColumnsExtended = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Namespace and name."},
	words("UID", "The UID of the object."),
	words("Status", "Whether it scales, and what limits it."),
	number("Min Replicas", "The fewest pods."),
	number("Max Replicas", "The most pods."),
	words("Current", "How many pods there are, and how many are wanted."),
	words("Metrics", "What is measured: Cpu, Memory or something else."),
	words("Benchmark", "What is wanted of it."),
	words("Last Sync Time", "When the autoscaler last changed the number of pods."),
	words("Error", "Why it cannot scale."),
}

func autoscalerRowExtended(h *autoscalingv2.HorizontalPodAutoscaler, _ time.Time) []any {
	state, problem, last := "Ready", "", ""
	for _, c := range h.Status.Conditions {
		if c.Status == corev1.ConditionFalse && (c.Type == autoscalingv2.AbleToScale || c.Type == autoscalingv2.ScalingActive) {
			state, problem = "Error", c.Message
		}
	}
	switch {
	case len(h.Status.Conditions) == 0:
		state = "Created"
	case problem == "" && h.Status.CurrentReplicas != h.Status.DesiredReplicas:
		state = "Scaling"
	}
	if t := h.Status.LastScaleTime; t != nil {
		last = t.Format(time.RFC3339)
	}
	name, benchmark := "Unknown", ""
	if len(h.Spec.Metrics) > 0 {
		m := &h.Spec.Metrics[0]
		if r := m.Resource; r != nil {
			name = map[corev1.ResourceName]string{corev1.ResourceCPU: "Cpu", corev1.ResourceMemory: "Memory"}[r.Name]
			name = or(name, "Unknown")
		}
		_, benchmark, _ = strings.Cut(MetricText(m, &autoscalingv2.MetricStatus{}), "/")
	}
	return []any{h.Namespace + "/" + h.Name, string(h.UID), state, value(h.Spec.MinReplicas), int64(h.Spec.MaxReplicas),
		fmt.Sprintf("%d/%d", h.Status.CurrentReplicas, h.Status.DesiredReplicas), name, benchmark, last, problem}
}

var autoscalerColumnsCompact = []metav1.TableColumnDefinition{
	{Name: "NAME", Type: "string", Format: "name", Description: "Name must be unique within a namespace."},
	words("UID", "The UID of the object."),
	words("REFERENCE", "What is scaled."),
	words("MINPODS", "The fewest pods."),
	words("MAXPODS", "The most pods."),
	words("REPLICAS", "How many pods there are."),
}

func autoscalerRowCompact(h *autoscalingv2.HorizontalPodAutoscaler, _ time.Time) []any {
	return []any{h.Name, string(h.UID), scaleTarget(h), leastPods(h), int64(h.Spec.MaxReplicas), int64(h.Status.CurrentReplicas)}
}
