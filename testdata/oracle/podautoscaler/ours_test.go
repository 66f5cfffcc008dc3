package podautoscaler

import (
	"context"
	"log/slog"
	"strconv"
	"sync"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/controller/podautoscaler"
	"minik8s/internal/controller/podautoscaler/decide"
	"minik8s/internal/informer"
)

// ours is our controller over one world. It is the API that the controller sees, too: a small one, in which any object may
// stand in any state.
type ours struct {
	client.Interface
	w      *world
	scales map[string]*autoscalingv1.Scale

	mu       sync.Mutex
	revision int
	objects  map[*api.Kind]map[string]api.Object
	watchers map[*api.Kind][]*watcher
	events   map[string][]string
}

func startOurs(ctx context.Context, w *world) (*ours, func()) {
	o := &ours{w: w, scales: map[string]*autoscalingv1.Scale{}, objects: map[*api.Kind]map[string]api.Object{}, watchers: map[*api.Kind][]*watcher{},
		events: map[string][]string{}}
	log := slog.New(slog.DiscardHandler)
	views := informer.NewViews(o, log)
	c := podautoscaler.New(o, views, o, api.NewTable(api.Builtin()...), o, podautoscaler.Options{Settings: decide.Defaults, Log: log})
	ready, done := make(chan struct{}), make(chan struct{})
	go func() { defer close(done); c.Run(ctx, func() { close(ready) }) }()
	<-ready
	return o, func() { <-done }
}

// Event implements podautoscaler.Recorder.
func (o *ours) Event(obj api.Object, eventtype, reason, format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events[obj.GetName()] = append(o.events[obj.GetName()], eventtype+" "+reason+" "+args[0].(string))
}

// watcher is an open watch.
type watcher struct {
	all  *ours
	out  chan client.Event
	stop sync.Once
}

func (w *watcher) Events() <-chan client.Event { return w.out }
func (w *watcher) Err() error                  { return nil }
func (w *watcher) Stop()                       { w.stop.Do(func() { close(w.out) }) }

func (o *ours) List(_ context.Context, kind *api.Kind, _ client.ListOptions) (*client.List, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := &client.List{Kind: kind, ResourceVersion: strconv.Itoa(o.revision)}
	for _, obj := range o.objects[kind] {
		l.Items = append(l.Items, obj)
	}
	return l, nil
}

func (o *ours) Watch(ctx context.Context, kind *api.Kind, _ client.WatchOptions) (client.Watcher, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w := &watcher{all: o, out: make(chan client.Event, 10000)}
	for _, obj := range o.objects[kind] {
		w.out <- client.Event{Type: client.Added, Object: obj, ResourceVersion: obj.GetResourceVersion()}
	}
	w.out <- client.Event{Type: client.Bookmark, ResourceVersion: strconv.Itoa(o.revision + 1), InitialEnd: true}
	o.revision++
	o.watchers[kind] = append(o.watchers[kind], w)
	context.AfterFunc(ctx, w.Stop)
	return w, nil
}

// put stores an object, or removes it.
func (o *ours) put(kind *api.Kind, obj api.Object, gone bool) api.Object {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.objects[kind] == nil {
		o.objects[kind] = map[string]api.Object{}
	}
	o.revision++
	obj = obj.DeepCopyObject().(api.Object)
	obj.SetResourceVersion(strconv.Itoa(o.revision))
	e := client.Event{Type: client.Added, Object: obj, ResourceVersion: obj.GetResourceVersion()}
	if o.objects[kind][obj.GetName()] != nil {
		e.Type = client.Modified
	}
	if o.objects[kind][obj.GetName()] = obj; gone {
		e.Type = client.Deleted
		delete(o.objects[kind], obj.GetName())
	}
	for _, w := range o.watchers[kind] {
		w.out <- e
	}
	return obj
}

func (o *ours) Get(_ context.Context, key client.Key) (api.Object, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if obj := o.objects[key.Kind][key.Name]; obj != nil {
		return obj, nil
	}
	return nil, apierrors.NewNotFound(key.Kind.GR(), key.Name)
}

// Update writes the status, and what the API server takes of a write of it.
func (o *ours) Update(ctx context.Context, obj api.Object, opts client.WriteOptions) (api.Object, error) {
	old, err := o.Get(ctx, client.KeyOf(obj))
	if err != nil {
		return nil, err
	}
	if opts.Subresource != api.StatusSubresource || old.GetResourceVersion() != obj.GetResourceVersion() {
		return nil, apierrors.NewConflict(api.HorizontalPodAutoscalers.GR(), obj.GetName(), nil)
	}
	h := old.DeepCopyObject().(*autoscalingv2.HorizontalPodAutoscaler)
	h.Status, h.Annotations = obj.(*autoscalingv2.HorizontalPodAutoscaler).Status, obj.GetAnnotations()
	return o.put(api.HorizontalPodAutoscalers, h, false), nil
}

func (o *ours) Scale(_ context.Context, key client.Key) (*autoscalingv1.Scale, error) {
	if err := o.w.targets[key.Name].getErr; err != nil {
		return nil, err
	}
	return o.scales[key.Name].DeepCopy(), nil
}

func (o *ours) SetScale(_ context.Context, key client.Key, s *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
	if err := o.w.targets[key.Name].setErr; err != nil {
		return nil, err
	}
	o.scales[key.Name] = s.DeepCopy()
	return s, nil
}

func (o *ours) podMetrics(m map[string]podMetric, err error) (map[string]decide.PodMetric, error) {
	out := map[string]decide.PodMetric{}
	for name, p := range m {
		out[name] = decide.PodMetric(p)
	}
	return out, err
}

// Resource implements podautoscaler.Metrics.
func (o *ours) Resource(_ context.Context, resource corev1.ResourceName, _ string, s labels.Selector, container string) (map[string]decide.PodMetric, error) {
	return o.podMetrics(o.w.perPod(string(resource)+"/"+container, s))
}

// Pods implements podautoscaler.Metrics.
func (o *ours) Pods(_ context.Context, name, _ string, s, _ labels.Selector) (map[string]decide.PodMetric, error) {
	return o.podMetrics(o.w.perPod(name, s))
}

// Object implements podautoscaler.Metrics.
func (o *ours) Object(_ context.Context, name, _ string, of *autoscalingv2.CrossVersionObjectReference, _ labels.Selector) (int64, error) {
	values, err := o.w.values(name + "/" + of.Name)
	if err != nil {
		return 0, err
	}
	return values[0], nil
}

// External implements podautoscaler.Metrics.
func (o *ours) External(_ context.Context, name, _ string, _ labels.Selector) ([]int64, error) {
	return o.w.values(name)
}

func (o *ours) get(ctx context.Context, name string) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	return client.Get[*autoscalingv2.HorizontalPodAutoscaler](ctx, o, client.Key{Kind: api.HorizontalPodAutoscalers, Namespace: "default", Name: name})
}

func (o *ours) respec(ctx context.Context, name string, spec *autoscalingv2.HorizontalPodAutoscalerSpec) error {
	h, err := o.get(ctx, name)
	if err != nil {
		return err
	}
	h = h.DeepCopy()
	h.Spec = *spec.DeepCopy()
	h.Generation++
	o.put(api.HorizontalPodAutoscalers, h, false)
	return nil
}

// setPods makes the pods be these.
func (o *ours) setPods(pods []*corev1.Pod) {
	stay := map[string]bool{}
	for _, p := range pods {
		stay[p.Name] = true
		o.put(api.Pods, p, false)
	}
	o.mu.Lock()
	var gone []api.Object
	for name, obj := range o.objects[api.Pods] {
		if !stay[name] {
			gone = append(gone, obj)
		}
	}
	o.mu.Unlock()
	for _, obj := range gone {
		o.put(api.Pods, obj, true)
	}
}

func (o *ours) taken(name string) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := o.events[name]
	delete(o.events, name)
	return out
}
