package podautoscaler

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	upstreamdefaults "k8s.io/kubernetes/pkg/apis/autoscaling/v2"
)

type (
	patchType = types.PatchType
	podMetric struct {
		Timestamp time.Time
		Window    time.Duration
		Value     int64
	}
)

// target is what one autoscaler scales.
type target struct {
	name, labels   string  // the value of its pods' label app
	load           float64 // of each metric's goal
	style          style
	getErr, setErr error
}

// style is how a target's pods are, so that some of them are plain enough to be scaled.
type style struct {
	odd, unmeasured, young float64 // how likely a pod is in an odd state, has no metrics, and has begun lately
	requests               bool
}

// world is what both controllers see, at one moment.
type world struct {
	rng     *rand.Rand
	targets map[string]*target
	pods    []*corev1.Pod
	pod     map[string]map[string]podMetric // by metric
	podErr  map[string]error
	value   map[string][]int64
}

func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

func (w *world) chance(p float64) bool { return w.rng.Float64() < p }

func newWorld(seed uint64) *world {
	return &world{rng: rand.New(rand.NewPCG(seed, seed)), targets: map[string]*target{}}
}

// perPod is a metric of the pods that are selected, for one question: its callers may change it.
func (w *world) perPod(name string, s labels.Selector) (map[string]podMetric, error) {
	app, _ := s.RequiresExactMatch("app")
	key := name + " " + app
	if err := w.podErr[key]; err != nil {
		return nil, err
	}
	out := map[string]podMetric{}
	for pod, m := range w.pod[key] {
		out[pod] = m
	}
	return out, nil
}

func (w *world) values(name string) ([]int64, error) {
	if w.value[name] == nil {
		return nil, errors.New("nobody measures " + name)
	}
	return w.value[name], nil
}

func quantity(milli int64) *resource.Quantity {
	return resource.NewMilliQuantity(milli, resource.DecimalSI)
}

// metric is a metric of an autoscaler.
func (w *world) metric(name string, i int) autoscalingv2.MetricSpec {
	rng, id := w.rng, autoscalingv2.MetricIdentifier{Name: fmt.Sprintf("m-%s-%d", name, i)}
	if w.chance(0.03) {
		id.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Odd"}}}
	} else if w.chance(0.2) {
		id.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	}
	usage := func() autoscalingv2.MetricTarget {
		if w.chance(0.3) {
			return autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: quantity(int64(rng.IntN(900) + 1))}
		}
		return autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(pick(rng, int32(50), 80, 30, 100, 130, 7))}
	}
	of := pick(rng, corev1.ResourceCPU, corev1.ResourceCPU, corev1.ResourceMemory)
	switch rng.IntN(9) {
	case 0:
		return autoscalingv2.MetricSpec{Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricSource{Metric: id,
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: quantity(int64(rng.IntN(900) + 1))}}}
	case 1, 2:
		t := autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: quantity(int64(rng.IntN(3000) + 1))}
		if w.chance(0.5) {
			t = autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: quantity(int64(rng.IntN(3000) + 1))}
		}
		if w.chance(0.05) {
			t.Type = autoscalingv2.UtilizationMetricType
		}
		return autoscalingv2.MetricSpec{Type: autoscalingv2.ObjectMetricSourceType, Object: &autoscalingv2.ObjectMetricSource{Metric: id, Target: t,
			DescribedObject: autoscalingv2.CrossVersionObjectReference{Kind: "Service", Name: "svc-" + name, APIVersion: "v1"}}}
	case 3, 4:
		t := autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: quantity(int64(rng.IntN(3000) + 1))}
		if w.chance(0.5) {
			t = autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: quantity(int64(rng.IntN(3000) + 1))}
		}
		if w.chance(0.03) {
			t = autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType}
		}
		return autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{Metric: id, Target: t}}
	case 5:
		return autoscalingv2.MetricSpec{Type: autoscalingv2.ContainerResourceMetricSourceType, ContainerResource: &autoscalingv2.ContainerResourceMetricSource{
			Name: of, Container: pick(rng, "a", "a", "b", "side"), Target: usage()}}
	}
	t := usage()
	if w.chance(0.02) {
		t = autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType}
	}
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{Name: of, Target: t}}
}

func (w *world) rules() *autoscalingv2.HPAScalingRules {
	rng := w.rng
	if w.chance(0.3) {
		return nil
	}
	r := &autoscalingv2.HPAScalingRules{}
	if w.chance(0.7) {
		r.StabilizationWindowSeconds = new(pick(rng, int32(0), 15, 30, 45, 60, 100, 300, 600))
	}
	if w.chance(0.6) {
		r.SelectPolicy = new(pick(rng, autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect, autoscalingv2.MaxChangePolicySelect,
			autoscalingv2.MinChangePolicySelect, autoscalingv2.DisabledPolicySelect))
	}
	if w.chance(0.3) {
		r.Tolerance = pick(rng, quantity(0), quantity(10), quantity(50), quantity(200), quantity(500), quantity(1500))
	}
	for range rng.IntN(4) {
		r.Policies = append(r.Policies, autoscalingv2.HPAScalingPolicy{Type: pick(rng, autoscalingv2.PodsScalingPolicy, autoscalingv2.PercentScalingPolicy),
			Value: pick(rng, int32(1), 2, 4, 10, 50, 100, 150), PeriodSeconds: pick(rng, int32(10), 15, 30, 45, 60, 120, 200, 600)})
	}
	return r
}

// spec is the spec of an autoscaler, with Kubernetes' defaults.
func (w *world) spec(name string) *autoscalingv2.HorizontalPodAutoscalerSpec {
	rng := w.rng
	s := autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: int32(pick(rng, 1, 3, 5, 10, 20, 100)),
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{Kind: pick(rng, "Deployment", "ReplicaSet"), Name: name, APIVersion: "apps/v1"}}
	switch {
	case w.chance(0.02):
		s.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{Kind: "Spaceship", Name: name, APIVersion: "example.com/v1"}
	case w.chance(0.01):
		s.ScaleTargetRef.APIVersion = "a/b/c"
	case w.chance(0.1):
		s.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{Kind: "ReplicationController", Name: name, APIVersion: "v1"}
	}
	for i := range pick(rng, 1, 1, 1, 2, 2, 3) {
		s.Metrics = append(s.Metrics, w.metric(name, i))
	}
	if w.chance(0.8) {
		s.MinReplicas = new(min(s.MaxReplicas, pick(rng, int32(1), 1, 2, 3, 0)))
	}
	for _, m := range s.Metrics {
		if m.Object != nil || m.External != nil {
			if w.chance(0.3) {
				s.MinReplicas = new(int32(0))
			}
		}
	}
	if w.chance(0.6) {
		s.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: w.rules(), ScaleDown: w.rules()}
	}
	h := &autoscalingv2.HorizontalPodAutoscaler{Spec: s}
	upstreamdefaults.SetDefaults_HorizontalPodAutoscaler(h)
	return &h.Spec
}

// podsOf makes a target's pods, and what is measured of them.
func (w *world) podsOf(t *target, n int, spec *autoscalingv2.HorizontalPodAutoscalerSpec) {
	rng, now := w.rng, time.Now()
	ago := func(most int) metav1.Time {
		return metav1.NewTime(now.Add(-time.Duration(rng.IntN(most)) * time.Second))
	}
	var mine []*corev1.Pod
	for i := range max(0, n) {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("%s-%d", t.name, i), Labels: map[string]string{"app": t.labels}}}
		container := func(name string) corev1.Container {
			c := corev1.Container{Name: name, Image: "i"}
			if t.style.requests || w.chance(0.97) {
				c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: *quantity(100 + 50*int64(i%3)), corev1.ResourceMemory: *quantity(200_000)}
			}
			return c
		}
		p.Spec.Containers = []corev1.Container{container("a"), container("b")}
		if w.chance(0.2) {
			side, init := container("side"), corev1.Container{Name: "init"}
			side.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
			p.Spec.InitContainers = []corev1.Container{init, side}
		}
		if w.chance(0.05) {
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: pick(rng, corev1.ResourceList{corev1.ResourceCPU: *quantity(400)},
				corev1.ResourceList{corev1.ResourceMemory: *quantity(900_000)}, corev1.ResourceList{})}
		}
		started, changed := ago(3000), ago(3000)
		if w.chance(t.style.young) {
			started, changed = ago(400), ago(100)
		}
		if changed.Before(&started) {
			changed = metav1.NewTime(started.Add(time.Duration(rng.IntN(60)) * time.Second))
		}
		p.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &started,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: changed}}}
		if w.chance(t.style.odd) {
			switch rng.IntN(8) {
			case 0:
				p.Status.Phase = corev1.PodPending
			case 1:
				p.Status.Phase = corev1.PodFailed
			case 2:
				p.Status.Phase = corev1.PodSucceeded
			case 3:
				p.Status.StartTime = nil
			case 4:
				p.Status.Conditions = nil
			case 5:
				p.DeletionTimestamp = new(metav1.NewTime(now))
			default:
				p.Status.Conditions[0].Status = pick(rng, corev1.ConditionFalse, corev1.ConditionFalse, corev1.ConditionUnknown)
			}
		}
		mine = append(mine, p)
	}
	w.pods = append(w.pods, mine...)
	for i := range spec.Metrics {
		w.measure(t, mine, &spec.Metrics[i])
	}
}

// measure makes the numbers of one metric, around its goal times the target's load.
func (w *world) measure(t *target, pods []*corev1.Pod, m *autoscalingv2.MetricSpec) {
	rng := w.rng
	perPod := func(key string, goal func(p *corev1.Pod) float64) {
		key += " " + t.labels
		if w.chance(0.03) {
			w.podErr[key] = errors.New("the metrics are away")
			return
		}
		values := map[string]podMetric{}
		for _, p := range pods {
			if !w.chance(t.style.unmeasured) {
				values[p.Name] = podMetric{time.Now().Add(-time.Duration(rng.IntN(120)) * time.Second), time.Duration(10+rng.IntN(50)) * time.Second,
					int64(goal(p) * t.load * (0.8 + 0.4*rng.Float64()))}
			}
		}
		if w.chance(0.03) {
			values["stranger"] = podMetric{time.Now(), time.Minute, int64(rng.IntN(1000))}
		}
		w.pod[key] = values
	}
	usage := func(of corev1.ResourceName, container string, target *autoscalingv2.MetricTarget) {
		perPod(string(of)+"/"+container, func(p *corev1.Pod) float64 {
			if target.AverageValue != nil {
				return float64(target.AverageValue.MilliValue())
			}
			var sum int64
			for _, c := range p.Spec.Containers {
				if q := c.Resources.Requests[of]; container == "" || container == c.Name {
					sum += q.MilliValue()
				}
			}
			if target.AverageUtilization == nil {
				return float64(sum)
			}
			return float64(sum) * float64(*target.AverageUtilization) / 100
		})
	}
	single := func(target *autoscalingv2.MetricTarget) int64 {
		goal := 1000.0
		if target.Value != nil {
			goal = float64(target.Value.MilliValue())
		} else if target.AverageValue != nil {
			goal = float64(target.AverageValue.MilliValue()) * float64(max(1, len(pods)))
		}
		return int64(goal * t.load * (0.8 + 0.4*rng.Float64()))
	}
	switch {
	case m.Resource != nil:
		usage(m.Resource.Name, "", &m.Resource.Target)
	case m.ContainerResource != nil:
		usage(m.ContainerResource.Name, m.ContainerResource.Container, &m.ContainerResource.Target)
	case m.Pods != nil:
		perPod(m.Pods.Metric.Name, func(*corev1.Pod) float64 { return float64(m.Pods.Target.AverageValue.MilliValue()) })
	case m.Object != nil && w.chance(0.97):
		w.value[m.Object.Metric.Name+"/"+m.Object.DescribedObject.Name] = []int64{single(&m.Object.Target)}
	case m.External != nil && w.chance(0.97):
		values := []int64{single(&m.External.Target)}
		for w.chance(0.2) {
			values = append(values, pick(rng, int64(rng.IntN(500)), 0, -int64(rng.IntN(500)), 1<<62))
		}
		w.value[m.External.Metric.Name] = values
	}
}

// scale is a target's Scale as others leave it.
func (w *world) scale(t *target, replicas int32) *autoscalingv1.Scale {
	s := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: t.name}}
	s.Spec.Replicas, s.Status.Replicas = replicas, max(0, replicas+pick(w.rng, int32(0), 0, 0, 0, -1, 1))
	s.Status.Selector = "app=" + t.labels
	switch {
	case w.chance(0.01):
		s.Status.Selector = ""
	case w.chance(0.01):
		s.Status.Selector = "app in in (x)"
	}
	return s
}

// unordered are the words of messages in which upstream names the first mistake of pods, or autoscalers, that it has in no
// order: which it is does not count.
var unordered = []string{"missing request for", "missing pod-level request", "not found in Pod", "are controlled by more than one HPA"}

func plain(message string) string {
	for _, words := range unordered {
		if i := strings.Index(message, words); i >= 0 {
			return message[:min(i, 45)] + "one of several"
		}
	}
	return message
}
