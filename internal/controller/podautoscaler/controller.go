package podautoscaler

import (
	"context"
	"log/slog"
	"sync"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/api/podspec"
	"minik8s/internal/client"
	"minik8s/internal/clock"
	"minik8s/internal/controller/loop"
	"minik8s/internal/controller/podautoscaler/decide"
	"minik8s/internal/informer"
	"minik8s/internal/supervise"
)

// Name is the component that the controller's Events name, as in Kubernetes.
const Name = "horizontal-pod-autoscaler"

// DefaultSyncPeriod is how often an autoscaler is looked at that does not say so itself, as in Kubernetes.
const DefaultSyncPeriod = 15 * time.Second

const workers = 5

// Recorder records Events, as an events.Recorder does.
type Recorder interface {
	Event(obj api.Object, eventtype, reason, messageFmt string, args ...any)
}

// Options are the settings of a Controller.
type Options struct {
	Settings decide.Settings
	// SyncPeriod is how often an autoscaler is looked at; 0: DefaultSyncPeriod.
	SyncPeriod time.Duration
	Log        *slog.Logger
}

// Controller is the controller.
type Controller struct {
	client  client.Interface
	record  Recorder
	kinds   *api.Table
	metrics Metrics
	opts    Options
	hpas    *informer.Informer[*autoscalingv2.HorizontalPodAutoscaler]
	pods    *informer.Informer[*corev1.Pod]
	nodes   *informer.Informer[*corev1.Node]
	index   *index
	loop    *loop.Loop
	now     func() time.Time

	mu     sync.Mutex
	states map[loop.Key]*state
}

// state is what is remembered of an autoscaler.
type state struct {
	uid     types.UID
	history decide.History
	wrote   uint64         // the version that its status was last written as
	said    []decide.Event // recorded since the status was last written
}

// New makes the controller. kinds is what the cluster serves, whose targets may be of any kind.
func New(c client.Interface, views *informer.Views, record Recorder, kinds *api.Table, metrics Metrics, opts Options) *Controller {
	if opts.SyncPeriod == 0 {
		opts.SyncPeriod = DefaultSyncPeriod
	}
	o := informer.Options{Views: views, Log: opts.Log}
	a := &Controller{client: c, record: record, kinds: kinds, metrics: metrics, opts: opts, now: clock.Now, index: newIndex(), states: map[loop.Key]*state{},
		hpas:  informer.New[*autoscalingv2.HorizontalPodAutoscaler](c, api.HorizontalPodAutoscalers, o),
		pods:  informer.New[*corev1.Pod](c, api.Pods, o),
		nodes: informer.New[*corev1.Node](c, api.Nodes, o),
	}
	a.loop = loop.New("horizontalpodautoscaler", opts.Log, a.reconcile)
	a.hpas.OnChange(func(old, now *autoscalingv2.HorizontalPodAutoscaler) {
		switch {
		case now == nil: // reconcile forgets it
			a.loop.Add(loop.Key{Namespace: old.Namespace, Name: old.Name})
		case old == nil || old.UID != now.UID || old.Generation != now.Generation || ownSettings(old) != ownSettings(now):
			a.loop.Add(loop.Key{Namespace: now.Namespace, Name: now.Name})
		}
	})
	a.pods.OnChange(a.index.changed)
	return a
}

// ownSettings are an autoscaler's annotations that count.
func ownSettings(h *autoscalingv2.HorizontalPodAutoscaler) [3]string {
	return [3]string{h.Annotations[api.SyncPeriodAnnotation], h.Annotations[api.UtilizationBasisAnnotation], h.Annotations[api.LeadingMetricAnnotation]}
}

// Run works until ctx ends.
func (c *Controller) Run(ctx context.Context, ready func()) error {
	return loop.Drive(ctx, ready, []supervise.Source{c.nodes, c.pods, c.hpas}, c.loop.Workers(workers))
}

// reconcile looks at an autoscaler, and again after its period. What fails is in its status and is tried again then, not
// before, as in Kubernetes.
func (c *Controller) reconcile(ctx context.Context, key loop.Key) error {
	h, ok := c.hpas.Get(key.Namespace, key.Name)
	if !ok || h.DeletionTimestamp != nil {
		c.mu.Lock()
		delete(c.states, key)
		c.mu.Unlock()
		c.index.forget(key)
		return nil
	}
	err := c.sync(ctx, key, h)
	c.loop.AddAfter(key, c.period(h))
	if err != nil && !apierrors.IsConflict(err) {
		c.opts.Log.Debug("an autoscaler could not be looked at", "autoscaler", key.String(), "error", err)
		return nil
	}
	return err
}

// period is how often an autoscaler is looked at.
func (c *Controller) period(h *autoscalingv2.HorizontalPodAutoscaler) time.Duration {
	if d, err := time.ParseDuration(h.Annotations[api.SyncPeriodAnnotation]); err == nil && d > 0 {
		return d
	}
	return c.opts.SyncPeriod
}

// stateOf is what is remembered of an autoscaler; one that was made anew under the same name begins anew. The loop works on a
// key once at a time, so that the state needs no lock of its own.
func (c *Controller) stateOf(key loop.Key, uid types.UID) *state {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.states[key]
	if s == nil || s.uid != uid {
		s = &state{uid: uid}
		c.states[key] = s
	}
	return s
}

// nodeMemory is how much memory a node has for pods.
func (c *Controller) nodeMemory(name string) (int64, bool) {
	n, ok := c.nodes.Get("", name)
	if !ok {
		return 0, false
	}
	q, ok := n.Status.Allocatable[corev1.ResourceMemory]
	if !ok {
		q, ok = n.Status.Capacity[corev1.ResourceMemory]
	}
	return podspec.Amount(corev1.ResourceMemory, q), ok
}
