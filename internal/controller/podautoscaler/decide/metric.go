package decide

import (
	"errors"
	"fmt"
	"math"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
)

// verdict is what one metric says: how many pods, and what it is called.
type verdict struct {
	replicas int32
	name     string
	status   autoscalingv2.MetricStatus
}

// failure is why a metric says nothing. reason is that of the condition and the event, cause their text, and err the whole.
type failure struct {
	reason string
	cause  error
	err    error
}

func failed(reason string, cause error, what string) *failure {
	return &failure{reason, cause, fmt.Errorf("failed to get %s: %w", what, cause)}
}

// metric is what the metric at i of the autoscaler wants.
func (in *Input) metric(d *Decision, i int) (verdict, *failure) {
	m := &in.Autoscaler.Spec.Metrics[i]
	var r Reading
	if i < len(in.Readings) {
		r = in.Readings[i]
	} else {
		r.Err = errors.New("nothing was measured")
	}
	switch {
	case m.Type == autoscalingv2.ObjectMetricSourceType && m.Object != nil:
		return in.object(d, m.Object, &r)
	case m.Type == autoscalingv2.PodsMetricSourceType && m.Pods != nil:
		return in.pods(d, m.Pods, &r)
	case m.Type == autoscalingv2.ExternalMetricSourceType && m.External != nil:
		return in.external(d, m.External, &r)
	case m.Type == autoscalingv2.ResourceMetricSourceType && m.Resource != nil:
		d.say("%s:", m.Resource.Name)
		v, value, err := in.resource(d, m.Resource.Name, "", &m.Resource.Target, &r)
		if err != nil {
			return v, failed("FailedGetResourceMetric", err, string(m.Resource.Name)+" resource metric value")
		}
		v.status = autoscalingv2.MetricStatus{Type: m.Type, Resource: &autoscalingv2.ResourceMetricStatus{Name: m.Resource.Name, Current: value}}
		return v, nil
	case m.Type == autoscalingv2.ContainerResourceMetricSourceType && m.ContainerResource != nil:
		c := m.ContainerResource
		d.say("%s of container %s:", c.Name, c.Container)
		v, value, err := in.resource(d, c.Name, c.Container, &c.Target, &r)
		if err != nil {
			return v, failed("FailedGetContainerResourceMetric", err, c.Container+" container metric value")
		}
		v.status = autoscalingv2.MetricStatus{Type: m.Type, ContainerResource: &autoscalingv2.ContainerResourceMetricStatus{Name: c.Name, Container: c.Container, Current: value}}
		return v, nil
	}
	err := fmt.Errorf("unknown metric source type %q", string(m.Type)) // validation refuses it
	return verdict{}, &failure{"InvalidMetricSourceType", err, err}
}

// resource is what a metric of the metrics API wants: of whole pods, or of one of their containers.
func (in *Input) resource(d *Decision, name corev1.ResourceName, container string, t *autoscalingv2.MetricTarget, r *Reading) (verdict, autoscalingv2.MetricValueStatus, error) {
	wrap := func(what string, err error) error { return fmt.Errorf("failed to get %s %s: %w", name, what, err) }
	unit := unitOf(name)
	what := "utilization"
	switch {
	case t.AverageValue != nil:
		what = "usage"
	case t.AverageUtilization == nil:
		return verdict{}, autoscalingv2.MetricValueStatus{},
			errors.New("invalid resource metric source: neither an average utilization target nor an average value (usage) target was set")
	}
	if r.Err != nil {
		return verdict{}, autoscalingv2.MetricValueStatus{}, wrap(what, fmt.Errorf("unable to get metrics for resource %s: %w", name, r.Err))
	}
	p, err := in.usage(d, r.Pods, name, func() (goal, error) {
		if t.AverageValue != nil {
			return goal{amount: t.AverageValue.MilliValue(), unit: unit}, nil
		}
		b, err := in.basisOf(name, container)
		return goal{basis: &b, percent: *t.AverageUtilization, unit: unit}, err
	})
	if err != nil {
		return verdict{}, autoscalingv2.MetricValueStatus{}, wrap(what, err)
	}
	value := autoscalingv2.MetricValueStatus{AverageValue: unit.quantity(p.average)}
	v := verdict{replicas: p.replicas, name: fmt.Sprintf("%s resource", name)}
	if t.AverageValue == nil {
		value.AverageUtilization = &p.percent
		v.name = fmt.Sprintf("%s resource utilization (percentage of request)", name)
		if container != "" {
			v.name = fmt.Sprintf("%s container resource utilization (percentage of request)", name)
		}
	}
	return v, value, nil
}

// pods is what a metric wants that each pod has, of those that the cluster's user defines.
func (in *Input) pods(d *Decision, m *autoscalingv2.PodsMetricSource, r *Reading) (verdict, *failure) {
	const reason, what = "FailedGetPodsMetric", "pods metric value"
	if r.BadSelector {
		return verdict{}, failed(reason, r.Err, what)
	}
	if r.Err != nil {
		return verdict{}, failed(reason, fmt.Errorf("unable to get metric %s: %w", m.Metric.Name, r.Err), what)
	}
	d.say("%s of each pod:", m.Metric.Name)
	p, err := in.usage(d, r.Pods, "", func() (goal, error) { return goal{amount: m.Target.AverageValue.MilliValue()}, nil })
	if err != nil {
		return verdict{}, failed(reason, err, what)
	}
	return verdict{p.replicas, "pods metric " + m.Metric.Name, autoscalingv2.MetricStatus{Type: autoscalingv2.PodsMetricSourceType,
		Pods: &autoscalingv2.PodsMetricStatus{Metric: m.Metric, Current: autoscalingv2.MetricValueStatus{AverageValue: unit{}.quantity(p.average)}}}}, nil
}

// object is what a metric of another object wants: in proportion to it, or so many of it for each pod.
func (in *Input) object(d *Decision, m *autoscalingv2.ObjectMetricSource, r *Reading) (verdict, *failure) {
	const reason, what = "FailedGetObjectMetric", "object metric value"
	if r.BadSelector {
		return verdict{}, failed(reason, r.Err, what)
	}
	status := &autoscalingv2.ObjectMetricStatus{DescribedObject: m.DescribedObject, Metric: m.Metric}
	t, err := &m.Target, error(nil)
	if r.Err != nil {
		err = fmt.Errorf("unable to get metric %s on %s %s/%s: %w", m.Metric.Name, m.DescribedObject.Kind, in.Autoscaler.Namespace, m.DescribedObject.Name, r.Err)
	}
	v := verdict{status: autoscalingv2.MetricStatus{Type: autoscalingv2.ObjectMetricSourceType, Object: status}}
	switch {
	case t.Type == autoscalingv2.ValueMetricType && t.Value != nil:
		used := first(r.Values)
		if err == nil {
			d.say("%s of %s %s:", m.Metric.Name, m.DescribedObject.Kind, m.DescribedObject.Name)
			v.replicas, err = in.inProportion(d, used, t.Value.MilliValue())
		}
		if err != nil {
			return verdict{}, failed(reason, err, what)
		}
		v.name = fmt.Sprintf("%s metric %s", m.DescribedObject.Kind, m.Metric.Name)
		status.Current.Value = unit{}.quantity(used)
		return v, nil
	case t.Type == autoscalingv2.AverageValueMetricType && t.AverageValue != nil:
		if err != nil {
			f := failed(reason, err, what)
			f.err = fmt.Errorf("failed to get %s: failed to get %s object metric: %w", what, m.Metric.Name, err)
			return verdict{}, f
		}
		d.say("%s of %s %s:", m.Metric.Name, m.DescribedObject.Kind, m.DescribedObject.Name)
		var average int64
		v.replicas, average = in.forEachPod(d, first(r.Values), t.AverageValue.MilliValue(), math.MaxInt64)
		v.name = fmt.Sprintf("external metric %s(%+v)", m.Metric.Name, m.Metric.Selector)
		status.Current.AverageValue = unit{}.quantity(average)
		return v, nil
	}
	return verdict{}, failed(reason, errors.New("invalid object metric source: neither a value target nor an average value target was set"), what)
}

// external is what a metric of something outside the cluster wants.
func (in *Input) external(d *Decision, m *autoscalingv2.ExternalMetricSource, r *Reading) (verdict, *failure) {
	const reason = "FailedGetExternalMetric"
	status := &autoscalingv2.ExternalMetricStatus{Metric: m.Metric}
	v := verdict{name: fmt.Sprintf("external metric %s(%+v)", m.Metric.Name, m.Metric.Selector),
		status: autoscalingv2.MetricStatus{Type: autoscalingv2.ExternalMetricSourceType, External: status}}
	err := r.Err
	if err != nil && !r.BadSelector {
		err = fmt.Errorf("unable to get external metric %s/%s/%+v: %s", in.Autoscaler.Namespace, m.Metric.Name, m.Metric.Selector, r.Err)
	}
	fail := func(cause error, format string) *failure {
		inner := fmt.Errorf(format, m.Metric.Name, cause)
		return &failure{reason, cause, fmt.Errorf("failed to get %s external metric value: %w", m.Metric.Name, inner)}
	}
	switch t := &m.Target; {
	case t.AverageValue != nil:
		if err != nil {
			return verdict{}, fail(err, "failed to get %s external metric: %w")
		}
		d.say("%s:", m.Metric.Name)
		var average int64
		v.replicas, average = in.forEachPod(d, totalForEach(r.Values), t.AverageValue.MilliValue(), math.MaxInt32)
		status.Current.AverageValue = unit{}.quantity(average)
		return v, nil
	case t.Value != nil:
		used := total(r.Values)
		if err == nil {
			d.say("%s:", m.Metric.Name)
			v.replicas, err = in.inProportion(d, used, t.Value.MilliValue())
		}
		if err != nil {
			return verdict{}, fail(err, "failed to get external metric %s: %w")
		}
		status.Current.Value = unit{}.quantity(used)
		return v, nil
	}
	cause := errors.New("invalid external metric source: neither a value target nor an average value target was set")
	return verdict{}, &failure{reason, cause, fmt.Errorf("failed to get %s external metric value: %w", m.Metric.Name, cause)}
}

// inProportion is as many pods as the ready ones times the ratio of a value and its goal. Without pods it is the ratio.
func (in *Input) inProportion(d *Decision, used, goal int64) (int32, error) {
	ratio := float64(used) / float64(goal)
	text := fmt.Sprintf("  %s; wanted %s: %s", unit{}.text(used), unit{}.text(goal), number(ratio))
	if in.Scale.Wanted == 0 {
		want := int32(math.Ceil(ratio))
		d.say("%s, and there is no pod: %d", text, want)
		return want, nil
	}
	if in.tolerance().has(ratio) {
		d.say("%s, within the tolerance: %d pods stay", text, in.Scale.Wanted)
		return in.Scale.Wanted, nil
	}
	if len(in.Pods) == 0 {
		return 0, fmt.Errorf("unable to calculate ready pods: %w", errNoPods)
	}
	ready := in.readyPods()
	want := int32(math.MaxInt32)
	if exact := ratio * float64(ready); exact <= math.MaxInt32 {
		want = int32(math.Ceil(exact))
	}
	d.say("%s x %d ready pods: %d", text, ready, want)
	return want, nil
}

// forEachPod is as many pods as there are goals in a value. average is the value for each pod that there is; without pods
// the value itself.
func (in *Input) forEachPod(d *Decision, used, goal int64, most float64) (want int32, average int64) {
	pods := in.Scale.Current
	want = pods
	ratio := float64(used) / (float64(goal) * float64(pods))
	text := fmt.Sprintf("  %s for %d pods; wanted %s for each", unit{}.text(used), pods, unit{}.text(goal))
	if in.tolerance().has(ratio) {
		d.say("%s, within the tolerance: %d pods stay", text, pods)
	} else {
		if exact := math.Ceil(float64(used) / float64(goal)); exact > most {
			want = math.MaxInt32
		} else {
			want = int32(exact)
		}
		d.say("%s: %d", text, want)
	}
	switch {
	case pods == 0 || used == math.MaxInt64:
		return want, used
	}
	return want, int64(math.Ceil(float64(used) / float64(pods)))
}

func first(values []int64) int64 {
	if len(values) == 0 {
		return 0
	}
	return values[0]
}

// total is the sum of values, at most the largest number.
func total(values []int64) int64 {
	var sum int64
	for _, v := range values {
		if v > 0 && sum > math.MaxInt64-v {
			return math.MaxInt64
		}
		sum += v
	}
	return sum
}

// totalForEach is total for a value of each pod, where Kubernetes takes a sum below zero for one that was too large.
func totalForEach(values []int64) int64 {
	var sum int64
	for _, v := range values {
		if sum += v; sum < 0 {
			return math.MaxInt64
		}
	}
	return sum
}
