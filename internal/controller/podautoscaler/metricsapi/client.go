package metricsapi

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	custom "k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
	external "k8s.io/metrics/pkg/apis/external_metrics/v1beta1"
	metrics "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"minik8s/internal/api"
	"minik8s/internal/controller/podautoscaler/decide"
)

// Getter gets objects of the API by their path.
type Getter interface {
	// Get decodes the answer to GET path, with a query, into an object. The error is what the API answered.
	Get(ctx context.Context, path string, query url.Values, into any) error
}

const (
	// patience bounds one question.
	patience = 10 * time.Second
	// defaultWindow is that of a metric which does not say over which time it was measured, as in Kubernetes.
	defaultWindow = time.Minute
)

// Client asks. It is safe for concurrent use.
type Client struct {
	get   Getter
	kinds *api.Table
	now   func() time.Time

	mu         sync.Mutex
	namespaces map[string]*namespace
}

// New makes a client. kinds is what the cluster serves: metrics of objects are asked for by their resource. A nil Getter
// answers that nobody serves metrics.
func New(get Getter, kinds *api.Table) *Client {
	if get == nil {
		get = nobody{}
	}
	return &Client{get: get, kinds: kinds, now: time.Now, namespaces: map[string]*namespace{}}
}

// nobody is the Getter where no metrics are served.
type nobody struct{}

func (nobody) Get(context.Context, string, url.Values, any) error {
	return errors.New("no metrics are served by this cluster")
}

// Resource implements podautoscaler.Metrics.
func (c *Client) Resource(ctx context.Context, resource corev1.ResourceName, ns string, pods labels.Selector, container string) (map[string]decide.PodMetric, error) {
	found, err := c.podMetrics(ctx, ns, pods)
	if err != nil {
		return nil, fmt.Errorf("unable to fetch metrics from resource metrics API: %w", err)
	}
	if len(found) == 0 {
		return nil, errors.New("no metrics returned from resource metrics API")
	}
	out := make(map[string]decide.PodMetric, len(found))
	for _, p := range found {
		if container != "" && !slices.ContainsFunc(p.Containers, func(c metrics.ContainerMetrics) bool { return c.Name == container }) {
			return nil, fmt.Errorf("failed to get container metrics: container %s not present in metrics for pod %s/%s", container, ns, p.Name) // as Kubernetes
		}
		if value, ok := used(p, resource, container); ok {
			out[p.Name] = decide.PodMetric{Timestamp: p.Timestamp.Time, Window: p.Window.Duration, Value: value}
		}
	}
	return out, nil
}

// Pods implements podautoscaler.Metrics.
func (c *Client) Pods(ctx context.Context, metric, ns string, pods, selector labels.Selector) (map[string]decide.PodMetric, error) {
	list, err := c.custom(ctx, "namespaces/"+ns+"/pods/*/"+metric, url.Values{"labelSelector": {pods.String()}}, selector)
	if err != nil {
		return nil, err
	}
	if len(list.Items) == 0 {
		return nil, errors.New("no metrics returned from custom metrics API")
	}
	out := make(map[string]decide.PodMetric, len(list.Items))
	for i := range list.Items {
		m := &list.Items[i]
		window := defaultWindow
		if m.WindowSeconds != nil {
			window = time.Duration(*m.WindowSeconds) * time.Second
		}
		out[m.DescribedObject.Name] = decide.PodMetric{Timestamp: m.Timestamp.Time, Window: window, Value: m.Value.MilliValue()}
	}
	return out, nil
}

// Object implements podautoscaler.Metrics.
func (c *Client) Object(ctx context.Context, metric, ns string, of *autoscalingv2.CrossVersionObjectReference, selector labels.Selector) (int64, error) {
	gvk := schema.FromAPIVersionAndKind(of.APIVersion, of.Kind)
	path := "namespaces/" + ns + "/metrics/" + metric
	if gvk.Group != "" || gvk.Kind != api.Namespaces.Kind {
		resource, err := c.resourceOf(gvk)
		if err != nil {
			return 0, fmt.Errorf("unable to fetch metrics from custom metrics API: %w", err)
		}
		path = "namespaces/" + ns + "/" + resource + "/" + of.Name + "/" + metric
	}
	list, err := c.custom(ctx, path, url.Values{}, selector)
	if err != nil {
		return 0, err
	}
	if n := len(list.Items); n != 1 {
		return 0, fmt.Errorf("unable to fetch metrics from custom metrics API: the custom metrics API server returned %v results when we asked for exactly one", n)
	}
	return list.Items[0].Value.MilliValue(), nil
}

// resourceOf is the name of a kind's objects in a path of the custom metrics: "services", "deployments.apps".
func (c *Client) resourceOf(gvk schema.GroupVersionKind) (string, error) {
	for _, k := range c.kinds.Served() {
		if k.Group == gvk.Group && k.Kind == gvk.Kind {
			return k.GR().String(), nil
		}
	}
	return "", fmt.Errorf("no matches for kind %q in group %q", gvk.Kind, gvk.Group)
}

func (c *Client) custom(ctx context.Context, path string, query url.Values, selector labels.Selector) (*custom.MetricValueList, error) {
	if s := selector.String(); s != "" {
		query.Set("metricLabelSelector", s)
	}
	list := &custom.MetricValueList{}
	if err := c.ask(ctx, "/apis/custom.metrics.k8s.io/v1beta2/"+escaped(path), query, list); err != nil {
		return nil, fmt.Errorf("unable to fetch metrics from custom metrics API: %w", err)
	}
	return list, nil
}

// External implements podautoscaler.Metrics.
func (c *Client) External(ctx context.Context, metric, ns string, selector labels.Selector) ([]int64, error) {
	query := url.Values{}
	if s := selector.String(); s != "" {
		query.Set("labelSelector", s)
	}
	list := &external.ExternalMetricValueList{}
	if err := c.ask(ctx, "/apis/external.metrics.k8s.io/v1beta1/"+escaped("namespaces/"+ns+"/"+metric), query, list); err != nil {
		return nil, fmt.Errorf("unable to fetch metrics from external metrics API: %w", err)
	}
	if len(list.Items) == 0 {
		return nil, errors.New("no metrics returned from external metrics API")
	}
	out := make([]int64, len(list.Items))
	for i := range list.Items {
		out[i] = list.Items[i].Value.MilliValue()
	}
	return out, nil
}

func (c *Client) ask(ctx context.Context, path string, query url.Values, into any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return c.get.Get(ctx, path, query, into)
}

// escaped is a path of which the parts between slashes may have any letters: names of metrics do. Validation lets no slash
// into them.
func escaped(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if p != "*" {
			parts[i] = url.PathEscape(p)
		}
	}
	return strings.Join(parts, "/")
}
