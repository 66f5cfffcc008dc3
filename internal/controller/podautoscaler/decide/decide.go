package decide

import (
	"errors"
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
)

// course is which way a decision goes.
type course int

const (
	byMetrics course = iota
	tooManyPods
	tooFewPods
	switchedOff // somebody else took the last pod away
)

// courseOf says which, for the present number of pods.
func courseOf(h *autoscalingv2.HorizontalPodAutoscaler, now int32) course {
	least := leastOf(h)
	switch {
	case now == 0 && toZero(h) && (least != 0 || fromZero(h)):
		return byMetrics
	case now == 0:
		return switchedOff
	case now > h.Spec.MaxReplicas:
		return tooManyPods
	case now < least:
		return tooFewPods
	}
	return byMetrics
}

func leastOf(h *autoscalingv2.HorizontalPodAutoscaler) int32 {
	if h.Spec.MinReplicas == nil {
		return 1
	}
	return *h.Spec.MinReplicas
}

// NeedsReadings reports whether the metrics have to be known for a decision.
func NeedsReadings(h *autoscalingv2.HorizontalPodAutoscaler, s Scale) bool {
	return courseOf(h, s.Wanted) == byMetrics
}

// NoScale is the decision if the target's Scale could not be read.
func NoScale(in *Input, err error) *Decision {
	d := &Decision{Status: *in.Autoscaler.Status.DeepCopy(), Err: err}
	d.event(corev1.EventTypeWarning, "FailedGetScale", "%s", err.Error())
	d.condition(in.Now, autoscalingv2.AbleToScale, false, "FailedGetScale", "the HPA controller was unable to get the target's current scale: %v", err)
	d.say("the target cannot be scaled: %v", err)
	return d
}

// Decide decides. If the Decision says so, the target has to be told, and then Finish completes the Decision.
func Decide(in *Input) *Decision {
	h, now := in.Autoscaler, in.Scale.Wanted
	d := &Decision{Status: *h.Status.DeepCopy(), current: now, least: leastOf(h)}
	d.condition(in.Now, autoscalingv2.AbleToScale, true, "SucceededGetScale", "the HPA controller was able to get the target's current scale")
	in.History.begin(now, in.Now)
	d.say("%d pods wanted until now, %d there; at least %d, at most %d", now, in.Scale.Current, d.least, h.Spec.MaxReplicas)
	d.Rescale = true
	switch courseOf(h, now) {
	case switchedOff:
		d.Rescale = false
		d.condition(in.Now, autoscalingv2.ScalingActive, false, "ScalingDisabled", "scaling is disabled since the replica count of the target is zero")
		d.say("the target has been set to 0 by others: nothing is done until it has pods again")
	case tooManyPods:
		d.Replicas, d.reason = h.Spec.MaxReplicas, "Current number of replicas above Spec.MaxReplicas"
	case tooFewPods:
		d.Replicas, d.reason = d.least, "Current number of replicas below Spec.MinReplicas"
	case byMetrics:
		if !in.byMetrics(d) {
			return d
		}
	}
	if d.Rescale {
		d.say("so %d becomes %d: %s", now, d.Replicas, d.reason)
		return d
	}
	d.Replicas = now
	d.say("so %d stay", now)
	d.report(in, false)
	return d
}

// byMetrics is the course of most decisions; false: there is none, and the status says why.
func (in *Input) byMetrics(d *Decision) bool {
	now := in.Scale.Wanted
	want, name, ok, err := in.mostWanted(d)
	d.Err = err
	if !ok {
		d.Rescale = false
		d.Replicas = in.Autoscaler.Status.DesiredReplicas
		d.report(in, false)
		d.event(corev1.EventTypeWarning, "FailedComputeMetricsReplicas", "%s", err.Error())
		if in.Selector != nil {
			d.say("%v", err)
		}
		d.say("so nothing is done")
		return false
	}
	want = max(want, 0)
	switch {
	case want > now:
		d.reason = name + " above target"
	case want < now:
		d.reason = "All metrics below target"
	}
	d.Replicas = in.limit(d, want)
	if now == 0 && d.least != 0 && toZero(in.Autoscaler) && d.Replicas < d.least {
		d.Replicas = d.least
		if d.reason == "" {
			d.reason = "Current number of replicas below Spec.MinReplicas"
		}
	}
	d.Rescale = d.Replicas != now
	return true
}

// mostWanted is the largest number of pods that a metric wants, and the metric's name. ok is false if there is none: no metric
// is known, or one is not and the others want fewer pods than there are. The error is of those that are not known.
func (in *Input) mostWanted(d *Decision) (want int32, name string, ok bool, err error) {
	if s := in.Selector; s != nil {
		if s.Event != "" {
			d.event(corev1.EventTypeWarning, s.Event, "%s", s.Err.Error())
		}
		if s.Condition != "" {
			d.condition(in.Now, autoscalingv2.ScalingActive, false, s.Condition, "%s", s.Message)
		}
		return 0, "", false, s.Err
	}
	metrics := in.Autoscaler.Spec.Metrics
	d.metrics = make([]autoscalingv2.MetricStatus, len(metrics))
	var worst *failure
	unknown, led := 0, false
	for i := range metrics {
		v, f := in.metric(d, i)
		if f != nil {
			d.event(corev1.EventTypeWarning, f.reason, "%s", f.cause.Error())
			d.say("  not known: %v", f.cause)
			if unknown++; worst == nil {
				worst = f
			}
			continue
		}
		d.metrics[i] = v.status
		leads := in.leads(i)
		if leads && !led || !led && (want == 0 || v.replicas > want) {
			want, name = v.replicas, v.name
		}
		led = led || leads
	}
	if worst != nil {
		err = fmt.Errorf("invalid metrics (%v invalid out of %v), first error is: %w", unknown, len(metrics), worst.err)
	}
	if unknown == len(metrics) || unknown > 0 && want < in.Scale.Wanted && !led {
		d.condition(in.Now, autoscalingv2.ScalingActive, false, reasonOf(worst), "the HPA was unable to compute the replica count: %v", causeOf(worst))
		if err == nil {
			err = errors.New("there is no metric") // validation and defaults see to it that there is one
		}
		return 0, "", false, err
	}
	d.condition(in.Now, autoscalingv2.ScalingActive, true, "ValidMetricFound", "the HPA was able to successfully calculate a replica count from %s", name)
	if len(metrics) > 1 {
		if led {
			d.say("%s comes before the others: %d", in.Autoscaler.Annotations[api.LeadingMetricAnnotation], want)
		} else {
			d.say("the most that a metric wants: %d", want)
		}
	}
	return want, name, true, err
}

// leads reports whether a metric is of the resource that comes before all others.
func (in *Input) leads(i int) bool {
	lead := in.Autoscaler.Annotations[api.LeadingMetricAnnotation]
	r := in.Autoscaler.Spec.Metrics[i].Resource
	return lead != "" && r != nil && string(r.Name) == lead
}

func reasonOf(f *failure) string {
	if f == nil {
		return "InvalidMetricSourceType"
	}
	return f.reason
}

func causeOf(f *failure) error {
	if f == nil {
		return nil
	}
	return f.cause
}

// toZero reports whether the decision takes the last pod away, until there is something to do again.
func (d *Decision) toZero(in *Input) bool {
	return d.current > 0 && d.Replicas == 0 && d.least == 0 && fromZero(in.Autoscaler)
}

// ToZero is the status that is to be written before the target is told to have no pod; nil: it is to have some. Without it an
// autoscaler whose controller is killed in between takes it that somebody else has switched its target off.
func (d *Decision) ToZero(in *Input) *autoscalingv2.HorizontalPodAutoscalerStatus {
	if !d.Rescale || !d.toZero(in) {
		return nil
	}
	before := &Decision{Status: *in.Autoscaler.Status.DeepCopy()}
	before.condition(in.Now, autoscalingv2.ScaledToZero, true, "ScaledToZero", "the HPA controller scaled the workload to zero")
	return &before.Status
}

// Finish completes a decision after the target was told; err is why it could not be.
func (d *Decision) Finish(in *Input, err error) {
	if err != nil {
		d.event(corev1.EventTypeWarning, "FailedRescale", "New size: %d; reason: %s; error: %v", d.Replicas, d.reason, err)
		d.condition(in.Now, autoscalingv2.AbleToScale, false, "FailedUpdateScale", "the HPA controller was unable to update the target scale: %v", err)
		d.say("the target could not be told: %v", err)
		d.Replicas = in.Autoscaler.Status.DesiredReplicas
		d.report(in, false)
		d.Err = err
		return
	}
	d.condition(in.Now, autoscalingv2.AbleToScale, true, "SucceededRescale", "the HPA controller was able to update the target scale to %d", d.Replicas)
	d.event(corev1.EventTypeNormal, "SuccessfulRescale", "New size: %d; reason: %s", d.Replicas, d.reason)
	behavior := in.Autoscaler.Spec.Behavior
	if behavior != nil {
		up, down := in.rules()
		behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: up, ScaleDown: down}
	}
	in.History.scaled(behavior, d.current, d.Replicas, in.Now)
	if d.toZero(in) {
		d.condition(in.Now, autoscalingv2.ScaledToZero, true, "ScaledToZero", "the HPA controller scaled the workload to zero")
	} else {
		d.condition(in.Now, autoscalingv2.ScaledToZero, false, "NotScaledToZero", "the HPA controller did not scale the workload to zero")
	}
	d.report(in, true)
}

// report makes the status that of this decision.
func (d *Decision) report(in *Input, scaled bool) {
	d.Status = autoscalingv2.HorizontalPodAutoscalerStatus{ObservedGeneration: new(in.Autoscaler.Generation), CurrentReplicas: d.current,
		DesiredReplicas: d.Replicas, LastScaleTime: d.Status.LastScaleTime, CurrentMetrics: d.metrics, Conditions: d.Status.Conditions}
	if scaled {
		d.Status.LastScaleTime = new(metav1.NewTime(in.Now))
	}
}
