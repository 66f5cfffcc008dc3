package podautoscaler_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/api"
	"minik8s/internal/client"
	ct "minik8s/internal/controller/controllertest"
	"minik8s/internal/controller/podautoscaler"
	"minik8s/internal/controller/podautoscaler/decide"
	"minik8s/internal/controller/podautoscaler/metricsapi"
	"minik8s/internal/controller/replicaset"
	"minik8s/internal/controller/sightings"
	"minik8s/internal/events"
)

// load is how much each pod uses of anything, in thousandths; what is negative is not known. asked counts the questions.
type load struct {
	c *ct.Cluster

	mu    sync.Mutex
	milli int64
	asked int
}

func (l *load) set(milli int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.milli = milli
}

func (l *load) questions() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked
}

func (l *load) value() (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked++; l.milli < 0 {
		return 0, errors.New("nothing is measured")
	}
	return l.milli, nil
}

func (l *load) of(ctx context.Context, pods labels.Selector) (map[string]decide.PodMetric, error) {
	value, err := l.value()
	if err != nil {
		return nil, err
	}
	list, _, err := client.All[*corev1.Pod](ctx, l.c.Admin(), api.Pods, client.ListOptions{Namespace: "default", Labels: pods})
	out := map[string]decide.PodMetric{}
	for _, p := range list {
		out[p.Name] = decide.PodMetric{Timestamp: time.Now().Add(time.Hour), Window: time.Second, Value: value}
	}
	return out, err
}

func (l *load) Resource(ctx context.Context, _ corev1.ResourceName, _ string, pods labels.Selector, _ string) (map[string]decide.PodMetric, error) {
	return l.of(ctx, pods)
}

func (l *load) Pods(ctx context.Context, _, _ string, pods, _ labels.Selector) (map[string]decide.PodMetric, error) {
	return l.of(ctx, pods)
}

func (l *load) Object(context.Context, string, string, *autoscalingv2.CrossVersionObjectReference, labels.Selector) (int64, error) {
	return l.value()
}

func (l *load) External(context.Context, string, string, labels.Selector) ([]int64, error) {
	value, err := l.value()
	return []int64{value}, err
}

// start runs the controller, one that makes pods, and hollow nodes.
func start(t *testing.T, m func(c *ct.Cluster) podautoscaler.Metrics) *ct.Cluster {
	c := ct.New(t)
	log := slog.New(slog.DiscardHandler)
	recorder := func(part string) *events.Recorder {
		r := events.New(c.As(part), part, "", log)
		go r.Run(c.Context())
		return r
	}
	c.Hollow(nil, "n1", "n2")
	c.Start(replicaset.New(c.As("replicaset-controller"), c.Views(), recorder("replicaset-controller"), sightings.New(), log).Run)
	settings := decide.Defaults
	settings.DownscaleWindow = 0
	c.Start(podautoscaler.New(c.As("podautoscaler-controller"), c.Views(), recorder("podautoscaler-controller"), c.Kinds(), m(c),
		podautoscaler.Options{Settings: settings, Log: log}).Run)
	return c
}

func target(c *ct.Cluster, name string, replicas int32) {
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
	rs.Spec = appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}}}}}}}
	ct.Create(c, rs)
}

// autoscaler looks at its target every second.
func autoscaler(name, of string, change ...func(*autoscalingv2.HorizontalPodAutoscaler)) *autoscalingv2.HorizontalPodAutoscaler {
	h := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{api.SyncPeriodAnnotation: "1s"}},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 4, Metrics: []autoscalingv2.MetricSpec{api.CPUMetric(50)},
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: of}}}
	for _, f := range change {
		f(h)
	}
	return h
}

func replicas(c *ct.Cluster, name string, n int32) {
	ct.Until(c, "replicas of "+name, api.ReplicaSets, func(list []*appsv1.ReplicaSet) bool {
		for _, rs := range list {
			if rs.Name == name {
				return *rs.Spec.Replicas == n
			}
		}
		return false
	})
}

// reason waits until a condition of an autoscaler has a reason, and returns its message.
func reason(c *ct.Cluster, name string, of autoscalingv2.HorizontalPodAutoscalerConditionType, reason string) string {
	message := ""
	ct.Until(c, string(of)+" with the reason "+reason, api.HorizontalPodAutoscalers, func(list []*autoscalingv2.HorizontalPodAutoscaler) bool {
		for _, h := range list {
			for _, cond := range h.Status.Conditions {
				if h.Name == name && cond.Type == of && cond.Reason == reason {
					message = cond.Message
					return true
				}
			}
		}
		return false
	})
	return message
}

// The load grows and falls, and the replicas follow; all of it is told.
func TestFollowsTheLoad(t *testing.T) {
	l := &load{milli: 50}
	c := start(t, func(c *ct.Cluster) podautoscaler.Metrics { l.c = c; return l })
	target(c, "web", 1)
	ct.Create(c, autoscaler("web", "web"))
	reason(c, "web", autoscalingv2.ScalingActive, "ValidMetricFound")
	l.set(1000)
	replicas(c, "web", 4)
	l.set(1)
	replicas(c, "web", 1)
	ct.Until(c, "events", api.Events, func(list []*corev1.Event) bool {
		up, down := false, false
		for _, e := range list {
			ours := e.Reason == "SuccessfulRescale" && e.InvolvedObject.Kind == "HorizontalPodAutoscaler" && e.InvolvedObject.APIVersion == "autoscaling/v2"
			up = up || ours && e.Message == "New size: 4; reason: cpu resource utilization (percentage of request) above target"
			down = down || ours && e.Message == "New size: 1; reason: All metrics below target"
		}
		return up && down
	})
	h := ct.Until(c, "the status", api.HorizontalPodAutoscalers, func(list []*autoscalingv2.HorizontalPodAutoscaler) bool {
		return list[0].Status.CurrentReplicas == 1 && list[0].Status.DesiredReplicas == 1
	})[0]
	if sum := h.Annotations[api.DecisionAnnotation]; !strings.Contains(sum, "1 pod use 1m of 100m requested: 1%; wanted 50%") {
		t.Errorf("the sum is %q", sum)
	}
}

// Each thing that is wrong is in a condition.
func TestConditions(t *testing.T) {
	l := &load{milli: -1}
	c := start(t, func(c *ct.Cluster) podautoscaler.Metrics { l.c = c; return l })
	ct.Create(c, autoscaler("lost", "absent"))
	if m := reason(c, "lost", autoscalingv2.AbleToScale, "FailedGetScale"); !strings.Contains(m, `"absent" not found`) {
		t.Error(m)
	}
	ct.Create(c, autoscaler("strange", "x", func(h *autoscalingv2.HorizontalPodAutoscaler) {
		h.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "example.com/v1", Kind: "Ship", Name: "x"}
	}))
	if m := reason(c, "strange", autoscalingv2.AbleToScale, "FailedGetScale"); !strings.Contains(m, `no matches for kind "Ship" in group "example.com"`) {
		t.Error(m)
	}
	target(c, "a", 2)
	ct.Create(c, autoscaler("one", "a"))
	if m := reason(c, "one", autoscalingv2.ScalingActive, "FailedGetResourceMetric"); !strings.Contains(m, "nothing is measured") {
		t.Error(m)
	}
	ct.Create(c, autoscaler("two", "a"))
	if m := reason(c, "two", autoscalingv2.ScalingActive, "AmbiguousSelector"); !strings.Contains(m, "controlled by more than one HPA") {
		t.Error(m)
	}
	if _, err := c.Admin().Delete(c.Context(), client.Key{Kind: api.HorizontalPodAutoscalers, Namespace: "default", Name: "two"}, nil); err != nil {
		t.Fatal(err)
	}
	l.set(50)
	reason(c, "one", autoscalingv2.ScalingActive, "ValidMetricFound") // its pods are its own again
}

// Without anybody who serves metrics there is a condition, and nothing else happens.
func TestNobodyServesMetrics(t *testing.T) {
	c := start(t, func(c *ct.Cluster) podautoscaler.Metrics { return metricsapi.New(nil, c.Kinds()) })
	target(c, "web", 2)
	ct.Create(c, autoscaler("web", "web"))
	m := reason(c, "web", autoscalingv2.ScalingActive, "FailedGetResourceMetric")
	if m != "the HPA was unable to compute the replica count: failed to get cpu utilization: unable to get metrics for resource cpu: "+
		"unable to fetch metrics from resource metrics API: no metrics are served by this cluster" {
		t.Error(m)
	}
	replicas(c, "web", 2)
}

// Where there is no autoscaler nobody asks, and one that is gone is not looked at any more.
func TestAsksOnlyForAutoscalers(t *testing.T) {
	l := &load{milli: 50}
	c := start(t, func(c *ct.Cluster) podautoscaler.Metrics { l.c = c; return l })
	target(c, "web", 2)
	replicas(c, "web", 2)
	if n := l.questions(); n != 0 {
		t.Errorf("%d questions without an autoscaler", n)
	}
	ct.Create(c, autoscaler("web", "web", func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Annotations = nil }))
	reason(c, "web", autoscalingv2.ScalingActive, "ValidMetricFound")
	asked := l.questions()
	ct.Change(c, api.HorizontalPodAutoscalers, "web", func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Spec.MinReplicas = new(int32(3)) })
	replicas(c, "web", 3) // a changed spec counts at once, not after the period
	if n := l.questions(); n > asked+2 {
		t.Errorf("%d questions more for one change", n-asked)
	}
}

// byQueue goes to zero, by an external metric.
func byQueue(name, of string) *autoscalingv2.HorizontalPodAutoscaler {
	return autoscaler(name, of, func(h *autoscalingv2.HorizontalPodAutoscaler) {
		h.Spec.MinReplicas = new(int32(0))
		h.Spec.Metrics = []autoscalingv2.MetricSpec{{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
			Metric: autoscalingv2.MetricIdentifier{Name: "queue"},
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: new(resource.MustParse("1"))}}}}
	})
}

// From zero and back, as an external metric says.
func TestToZeroAndBack(t *testing.T) {
	l := &load{milli: 3000}
	c := start(t, func(c *ct.Cluster) podautoscaler.Metrics { l.c = c; return l })
	target(c, "web", 1)
	ct.Create(c, byQueue("web", "web"))
	replicas(c, "web", 3)
	l.set(0)
	replicas(c, "web", 0)
	reason(c, "web", autoscalingv2.ScaledToZero, "ScaledToZero")
	l.set(2000)
	replicas(c, "web", 2)
}
