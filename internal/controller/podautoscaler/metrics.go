package podautoscaler

import (
	"context"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/controller/podautoscaler/decide"
)

// Metrics are what was measured. All values are in thousandths. Answers may be shared among callers and are not changed. An
// error says who was asked and why there is no answer; an empty answer is an error, too.
type Metrics interface {
	// Resource returns what pods use of a resource: cpu in thousandths of a core, memory in thousandths of a byte, by the
	// pods' names. container is one of their containers, or empty for the whole pod. A pod of which a container was not
	// measured is left out.
	Resource(ctx context.Context, resource corev1.ResourceName, namespace string, pods labels.Selector, container string) (map[string]decide.PodMetric, error)
	// Pods returns a metric that each pod has, by the pods' names.
	Pods(ctx context.Context, metric, namespace string, pods, selector labels.Selector) (map[string]decide.PodMetric, error)
	// Object returns a metric of one object of the namespace.
	Object(ctx context.Context, metric, namespace string, of *autoscalingv2.CrossVersionObjectReference, selector labels.Selector) (int64, error)
	// External returns the values of a metric of something outside the cluster, one for each set of labels.
	External(ctx context.Context, metric, namespace string, selector labels.Selector) ([]int64, error)
}
