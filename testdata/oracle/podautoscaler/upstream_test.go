package podautoscaler

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	v1core "k8s.io/client-go/kubernetes/typed/core/v1"
	scaleclient "k8s.io/client-go/scale"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
)

// upstream is Kubernetes' controller over one world.
type upstream struct {
	w      *world
	scales map[string]*autoscalingv1.Scale
	client *fake.Clientset
	pods   cache.Indexer

	mu     sync.Mutex
	events map[string][]string // by autoscaler: type, reason and message
}

func startUpstream(ctx context.Context, w *world) (*upstream, func()) {
	u := &upstream{w: w, scales: map[string]*autoscalingv1.Scale{}, client: fake.NewSimpleClientset(), //nolint:staticcheck // the newer one makes a map of all kinds for each write
		events: map[string][]string{}}
	// Its recorder drops what comes too often; what it says to the log is complete.
	ctx = klog.NewContext(ctx, logr.New(eventSink{u}))
	factory := informers.NewSharedInformerFactory(u.client, 0)
	hpas, pods := factory.Autoscaling().V2().HorizontalPodAutoscalers(), factory.Core().V1().Pods()
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "apps", Version: "v1"}, {Version: "v1"}})
	for _, gvk := range []schema.GroupVersionKind{{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "apps", Version: "v1", Kind: "ReplicaSet"},
		{Version: "v1", Kind: "ReplicationController"}} {
		mapper.Add(gvk, meta.RESTScopeNamespace)
	}
	c := podautoscaler.NewHorizontalController(ctx, u, u, u.client.AutoscalingV2(), mapper, u, hpas, pods,
		15*time.Second, 5*time.Minute, 0.1, 5*time.Minute, 30*time.Second)
	u.pods = pods.Informer().GetIndexer()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx, 1) }()
	return u, func() { <-done; factory.Shutdown() }
}

// eventSink is a log that keeps the Events.
type eventSink struct{ u *upstream }

func (eventSink) Init(logr.RuntimeInfo)            {}
func (eventSink) Enabled(int) bool                 { return true }
func (eventSink) Error(error, string, ...any)      {}
func (s eventSink) WithValues(...any) logr.LogSink { return s }
func (s eventSink) WithName(string) logr.LogSink   { return s }
func (s eventSink) Info(_ int, msg string, kv ...any) {
	if msg != "Event occurred" {
		return
	}
	values := map[string]string{}
	for i := 0; i+1 < len(kv); i += 2 {
		values[fmt.Sprint(kv[i])] = fmt.Sprint(kv[i+1])
	}
	_, name, _ := strings.Cut(values["object"], "/")
	s.u.mu.Lock()
	defer s.u.mu.Unlock()
	s.u.events[name] = append(s.u.events[name], values["type"]+" "+values["reason"]+" "+values["message"])
}

// Events implements v1core.EventsGetter.
func (u *upstream) Events(string) v1core.EventInterface { return sink{} }

// sink takes what the recorder writes: what counts is in the log.
type sink struct{ v1core.EventInterface }

func (sink) CreateWithEventNamespace(e *corev1.Event) (*corev1.Event, error) {
	return e, nil
}

func (sink) UpdateWithEventNamespace(e *corev1.Event) (*corev1.Event, error) {
	return e, nil
}

func (sink) PatchWithEventNamespace(e *corev1.Event, _ []byte) (*corev1.Event, error) {
	return e, nil
}

// Scales implements scaleclient.ScalesGetter.
func (u *upstream) Scales(string) scaleclient.ScaleInterface { return u }

// Get implements scaleclient.ScaleInterface.
func (u *upstream) Get(_ context.Context, gr schema.GroupResource, name string, _ metav1.GetOptions) (*autoscalingv1.Scale, error) {
	if err := u.w.targets[name].getErr; err != nil {
		return nil, err
	}
	return u.scales[name].DeepCopy(), nil
}

// Update implements scaleclient.ScaleInterface.
func (u *upstream) Update(_ context.Context, _ schema.GroupResource, s *autoscalingv1.Scale, _ metav1.UpdateOptions) (*autoscalingv1.Scale, error) {
	if err := u.w.targets[s.Name].setErr; err != nil {
		return nil, err
	}
	u.scales[s.Name] = s.DeepCopy()
	return s, nil
}

// Patch implements scaleclient.ScaleInterface.
func (u *upstream) Patch(context.Context, schema.GroupVersionResource, string, patchType, []byte, metav1.PatchOptions) (*autoscalingv1.Scale, error) {
	return nil, errors.New("not used")
}

func (u *upstream) podMetrics(m map[string]podMetric, err error) (metrics.PodMetricsInfo, time.Time, error) {
	if err != nil {
		return nil, time.Time{}, err
	}
	out := metrics.PodMetricsInfo{}
	for name, p := range m {
		out[name] = metrics.PodMetric(p)
	}
	return out, time.Time{}, nil
}

// GetResourceMetric implements metrics.MetricsClient.
func (u *upstream) GetResourceMetric(_ context.Context, resource corev1.ResourceName, _ string, s labels.Selector, container string) (metrics.PodMetricsInfo, time.Time, error) {
	return u.podMetrics(u.w.perPod(string(resource)+"/"+container, s))
}

// GetRawMetric implements metrics.MetricsClient.
func (u *upstream) GetRawMetric(name, _ string, s, _ labels.Selector) (metrics.PodMetricsInfo, time.Time, error) {
	return u.podMetrics(u.w.perPod(name, s))
}

// GetObjectMetric implements metrics.MetricsClient.
func (u *upstream) GetObjectMetric(name, _ string, of *autoscalingv2.CrossVersionObjectReference, _ labels.Selector) (int64, time.Time, error) {
	values, err := u.w.values(name + "/" + of.Name)
	if err != nil {
		return 0, time.Time{}, err
	}
	return values[0], time.Time{}, nil
}

// GetExternalMetric implements metrics.MetricsClient.
func (u *upstream) GetExternalMetric(name, _ string, _ labels.Selector) ([]int64, time.Time, error) {
	values, err := u.w.values(name)
	return values, time.Time{}, err
}

func (u *upstream) create(ctx context.Context, h *autoscalingv2.HorizontalPodAutoscaler) error {
	_, err := u.client.AutoscalingV2().HorizontalPodAutoscalers("default").Create(ctx, h.DeepCopy(), metav1.CreateOptions{})
	return err
}

func (u *upstream) get(ctx context.Context, name string) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	return u.client.AutoscalingV2().HorizontalPodAutoscalers("default").Get(ctx, name, metav1.GetOptions{})
}

// respec gives an autoscaler another spec, as the API server does: a new generation.
func (u *upstream) respec(ctx context.Context, name string, spec *autoscalingv2.HorizontalPodAutoscalerSpec) error {
	h, err := u.get(ctx, name)
	if err != nil {
		return err
	}
	h = h.DeepCopy()
	h.Spec = *spec.DeepCopy()
	h.Generation++
	_, err = u.client.AutoscalingV2().HorizontalPodAutoscalers("default").Update(ctx, h, metav1.UpdateOptions{})
	return err
}

func (u *upstream) remove(ctx context.Context, name string) error {
	return u.client.AutoscalingV2().HorizontalPodAutoscalers("default").Delete(ctx, name, metav1.DeleteOptions{})
}

func (u *upstream) setPods(pods []*corev1.Pod) error {
	list := make([]any, len(pods))
	for i, p := range pods {
		list[i] = p
	}
	return u.pods.Replace(list, "")
}

func (u *upstream) taken(name string) []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := u.events[name]
	delete(u.events, name)
	return out
}
