package podautoscaler

import (
	"context"
	"errors"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/controller/loop"
	"minik8s/internal/controller/podautoscaler/decide"
)

// gather finds the target's pods and what was measured of them.
func (c *Controller) gather(ctx context.Context, key loop.Key, in *decide.Input, scale *autoscalingv1.Scale) {
	var pods labels.Selector
	if pods, in.Selector = parse(scale.Status.Selector); in.Selector != nil {
		return
	}
	c.index.set(key, scale.Status.Selector, pods, c.pods.List)
	var owners []loop.Key
	if in.Pods, owners = c.index.podsOf(key); len(owners) > 1 {
		text := fmt.Sprintf("pods by selector %s are controlled by more than one HPA (e.g. %v)", scale.Status.Selector, owners)
		in.Selector = &decide.SelectorError{Event: "AmbiguousSelector", Condition: "AmbiguousSelector", Message: text, Err: errors.New(text)}
		return
	}
	h := in.Autoscaler
	in.Readings = make([]decide.Reading, len(h.Spec.Metrics))
	for i := range h.Spec.Metrics {
		in.Readings[i] = c.reading(ctx, h.Namespace, &h.Spec.Metrics[i], pods)
	}
}

// parse reads a Scale's selector.
func parse(text string) (labels.Selector, *decide.SelectorError) {
	if text == "" {
		return nil, &decide.SelectorError{Event: "SelectorRequired", Condition: "InvalidSelector",
			Message: "the HPA target's scale is missing a selector", Err: errors.New("selector is required")}
	}
	s, err := labels.Parse(text)
	if err != nil {
		err = fmt.Errorf("couldn't convert selector into a corresponding internal selector object: %v", err)
		return nil, &decide.SelectorError{Event: "InvalidSelector", Condition: "InvalidSelector", Message: err.Error(), Err: err}
	}
	return s, nil
}

// reading asks for what one metric needs.
func (c *Controller) reading(ctx context.Context, namespace string, m *autoscalingv2.MetricSpec, pods labels.Selector) (r decide.Reading) {
	var selector labels.Selector
	of := func(id *autoscalingv2.MetricIdentifier) bool {
		if selector, r.Err = metav1.LabelSelectorAsSelector(id.Selector); r.Err != nil {
			r.BadSelector = true
		}
		return r.Err == nil
	}
	switch {
	case m.Resource != nil && m.Type == autoscalingv2.ResourceMetricSourceType:
		r.Pods, r.Err = c.metrics.Resource(ctx, m.Resource.Name, namespace, pods, "")
	case m.ContainerResource != nil && m.Type == autoscalingv2.ContainerResourceMetricSourceType:
		r.Pods, r.Err = c.metrics.Resource(ctx, m.ContainerResource.Name, namespace, pods, m.ContainerResource.Container)
	case m.Pods != nil && m.Type == autoscalingv2.PodsMetricSourceType && of(&m.Pods.Metric):
		r.Pods, r.Err = c.metrics.Pods(ctx, m.Pods.Metric.Name, namespace, pods, selector)
	case m.Object != nil && m.Type == autoscalingv2.ObjectMetricSourceType && of(&m.Object.Metric):
		var value int64
		value, r.Err = c.metrics.Object(ctx, m.Object.Metric.Name, namespace, &m.Object.DescribedObject, selector)
		r.Values = []int64{value}
	case m.External != nil && m.Type == autoscalingv2.ExternalMetricSourceType && of(&m.External.Metric):
		r.Values, r.Err = c.metrics.External(ctx, m.External.Metric.Name, namespace, selector)
	}
	return r
}
