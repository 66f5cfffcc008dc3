package decide

import (
	"fmt"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
)

// Settings are the same for all autoscalers of a cluster.
type Settings struct {
	// Tolerance is how far the ratio of measured and wanted may be from 1 before anything is done, where the autoscaler's
	// behavior does not say.
	Tolerance float64
	// DownscaleWindow is how long a recommendation keeps the number of pods up, where the behavior does not say.
	DownscaleWindow time.Duration
	// CPUInitialization is how long after its start a pod's cpu counts only while the pod is ready, and only if it was
	// measured since then.
	CPUInitialization time.Duration
	// InitialReadiness: a pod whose readiness changed last within this time after its start was never ready.
	InitialReadiness time.Duration
}

// Defaults are Kubernetes' settings.
var Defaults = Settings{Tolerance: 0.1, DownscaleWindow: 5 * time.Minute, CPUInitialization: 5 * time.Minute, InitialReadiness: 30 * time.Second}

// Scale is what the target says of its pods.
type Scale struct {
	// Wanted and Current are spec.replicas and status.replicas of its Scale.
	Wanted, Current int32
}

// PodMetric is what was measured of a pod.
type PodMetric struct {
	// Timestamp is the end of the Window over which it was measured.
	Timestamp time.Time
	Window    time.Duration
	// Value is in thousandths: of a core, a byte, or whatever is measured.
	Value int64
}

// Reading is what was measured for one metric of an autoscaler.
type Reading struct {
	// Pods are the pods' values by name, for metrics that each pod has. It is not changed.
	Pods map[string]PodMetric
	// Values are those of an object (one) or of an external metric (any number), in thousandths.
	Values []int64
	// Err is why nothing was measured.
	Err error
	// BadSelector: Err is a mistake in the metric's own selector.
	BadSelector bool
}

// Input is what a decision is made from. Nothing of it but History is changed.
type Input struct {
	Autoscaler *autoscalingv2.HorizontalPodAutoscaler
	Scale      Scale
	// Selector are the errors of the target's selector; see the type.
	Selector *SelectorError
	// Pods are those that the target's selector selects.
	Pods []*corev1.Pod
	// Readings are those of spec.metrics, in their order. They and Pods are needed only if NeedsReadings.
	Readings []Reading
	// NodeMemory is how much memory a node has for pods, in bytes; false: it is not known. May be nil.
	NodeMemory func(node string) (int64, bool)
	History    *History
	Settings   Settings
	Now        time.Time
}

// SelectorError is why the target's selector cannot be used. Event is empty if nobody is told by an Event.
type SelectorError struct {
	Event     string // its reason
	Condition string // the reason of the condition ScalingActive; empty: it stays as it is
	Message   string // the condition's
	Err       error
}

// Event is something to be told about the autoscaler.
type Event struct{ Type, Reason, Message string }

// Decision is the result.
type Decision struct {
	// Replicas is how many pods are wanted.
	Replicas int32
	// Rescale: the target has to be told. Finish then says how that ended.
	Rescale bool
	// Status is the autoscaler's new status.
	Status autoscalingv2.HorizontalPodAutoscalerStatus
	Events []Event
	// Lines are the sum in words.
	Lines []string
	// Err is what kept a decision, or a part of it, from being made.
	Err error

	reason  string // of the scaling
	current int32
	metrics []autoscalingv2.MetricStatus
	least   int32
}

func (d *Decision) event(kind, reason, format string, args ...any) {
	message := format
	if len(args) > 0 {
		message = fmt.Sprintf(format, args...)
	}
	d.Events = append(d.Events, Event{kind, reason, message})
}

func (d *Decision) say(format string, args ...any) {
	d.Lines = append(d.Lines, fmt.Sprintf(format, args...))
}
