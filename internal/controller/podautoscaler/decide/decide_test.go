package decide

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
)

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// autoscaler wants 50 % of the requested cpu, with 1 to 10 pods.
func autoscaler(change ...func(*autoscalingv2.HorizontalPodAutoscaler)) *autoscalingv2.HorizontalPodAutoscaler {
	h := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Generation: 3},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MinReplicas: new(int32(1)), MaxReplicas: 10, Metrics: []autoscalingv2.MetricSpec{api.CPUMetric(50)}}}
	for _, c := range change {
		c(h)
	}
	return h
}

// pod has been ready for an hour, and requests 100m of cpu.
func pod(i int, change ...func(*corev1.Pod)) *corev1.Pod {
	before := metav1.NewTime(start.Add(-time.Hour))
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%d", i)}, Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c",
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}}}}}}
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &before,
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: before}}}
	for _, c := range change {
		c(p)
	}
	return p
}

func pods(n int, change ...func(*corev1.Pod)) []*corev1.Pod {
	var out []*corev1.Pod
	for i := range n {
		out = append(out, pod(i, change...))
	}
	return out
}

// each is that the first n pods use so much each.
func each(n int, milli int64) Reading {
	r := Reading{Pods: map[string]PodMetric{}}
	for i := range n {
		r.Pods[fmt.Sprintf("p%d", i)] = PodMetric{Timestamp: start, Window: 30 * time.Second, Value: milli}
	}
	return r
}

func input(h *autoscalingv2.HorizontalPodAutoscaler, list []*corev1.Pod, readings ...Reading) *Input {
	return &Input{Autoscaler: h, Scale: Scale{int32(len(list)), int32(len(list))}, Pods: list, Readings: readings, History: &History{}, Settings: Defaults, Now: start}
}

func reasons(d *Decision) string {
	var out []string
	for _, c := range d.Status.Conditions {
		out = append(out, fmt.Sprintf("%s=%s:%s", c.Type, c.Status, c.Reason))
	}
	return strings.Join(out, " ")
}

func TestUtilization(t *testing.T) {
	pending := func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }
	withOne := func(list []*corev1.Pod, change func(*corev1.Pod)) []*corev1.Pod {
		change(list[len(list)-1])
		return list
	}
	for _, x := range []struct {
		name    string
		pods    []*corev1.Pod
		reading Reading
		want    int32
	}{
		{"twice as much", pods(3), each(3, 100), 6},
		{"rounded up", pods(3), each(3, 70), 5},
		{"within the tolerance", pods(3), each(3, 55), 3},
		{"just without it", pods(3), each(3, 56), 4},
		{"half as much, held by the window", pods(4), each(4, 25), 4},
		{"a pending pod is taken as idle", withOne(pods(4), pending), each(3, 100), 6},
		{"a pending pod takes the growth away", withOne(pods(3), pending), each(2, 70), 3},
		{"a pod without metrics is taken as idle", pods(4), each(3, 100), 6},
		{"a failed pod is left out", withOne(pods(4), func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), each(4, 100), 6},
		{"one that goes is left out", withOne(pods(4), func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: start} }), each(4, 100), 6},
		{"one that starts is taken as idle", withOne(pods(4), func(p *corev1.Pod) {
			p.Status.StartTime = &metav1.Time{Time: start.Add(-time.Minute)}
			p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(start.Add(-10 * time.Second)) // within the window of 30 s
		}), each(4, 100), 6},
		{"at most ten", pods(6), each(6, 1000), 10},
		{"at most twice as many, or four", pods(1), each(1, 1000), 4},
	} {
		t.Run(x.name, func(t *testing.T) {
			d := Decide(input(autoscaler(), x.pods, x.reading))
			if d.Replicas != x.want || d.Err != nil {
				t.Errorf("got %d, want %d (%v)\n%s", d.Replicas, x.want, d.Err, strings.Join(d.Lines, "\n"))
			}
		})
	}
}

// On the way down, pods of which nothing is known are taken as busy.
func TestMissingPodsOnTheWayDown(t *testing.T) {
	in := input(autoscaler(), pods(4), each(3, 10))
	in.Settings.DownscaleWindow = 0
	in.History.begin(4, start.Add(-time.Hour))
	d := Decide(in) // (3 x 10 + 100) / 400 = 32 % of 50 %: 0.64 x 4 = 2.56
	if d.Replicas != 3 {
		t.Errorf("got %d\n%s", d.Replicas, strings.Join(d.Lines, "\n"))
	}
}

func TestBasis(t *testing.T) {
	bare := func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = nil }
	limited := func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("100Mi")}}
	}
	basis := func(b string) func(*autoscalingv2.HorizontalPodAutoscaler) {
		return func(h *autoscalingv2.HorizontalPodAutoscaler) {
			h.Annotations = map[string]string{api.UtilizationBasisAnnotation: b}
		}
	}
	memory := func(h *autoscalingv2.HorizontalPodAutoscaler) {
		h.Spec.Metrics[0].Resource.Name = corev1.ResourceMemory
	}
	const mi = 1 << 20 * 1000
	for _, x := range []struct {
		name    string
		change  []func(*autoscalingv2.HorizontalPodAutoscaler)
		pod     func(*corev1.Pod)
		used    int64
		percent int32 // 0: an error
	}{
		{"of requests", nil, func(*corev1.Pod) {}, 60, 60},
		{"of requests that are missing", nil, bare, 60, 0},
		{"of a core", []func(*autoscalingv2.HorizontalPodAutoscaler){basis(api.BasisCapacity)}, func(*corev1.Pod) {}, 600, 60},
		{"of requests, if there are any", []func(*autoscalingv2.HorizontalPodAutoscaler){basis(api.BasisRequestsOrCapacity)}, func(*corev1.Pod) {}, 60, 60},
		{"of a core, as there are none", []func(*autoscalingv2.HorizontalPodAutoscaler){basis(api.BasisRequestsOrCapacity)}, bare, 600, 60},
		{"of the limit", []func(*autoscalingv2.HorizontalPodAutoscaler){basis(api.BasisCapacity), memory}, limited, 60 * mi, 60},
		{"of the node", []func(*autoscalingv2.HorizontalPodAutoscaler){basis(api.BasisCapacity), memory}, bare, 600 * mi, 60},
		{"of a node that is not known", []func(*autoscalingv2.HorizontalPodAutoscaler){basis(api.BasisCapacity), memory},
			func(p *corev1.Pod) { bare(p); p.Spec.NodeName = "other" }, 600 * mi, 0},
	} {
		t.Run(x.name, func(t *testing.T) {
			in := input(autoscaler(x.change...), pods(2, x.pod), each(2, x.used))
			in.NodeMemory = func(node string) (int64, bool) { return 1000 << 20, node == "n" }
			d := Decide(in)
			if x.percent == 0 {
				if d.Err == nil || !strings.Contains(reasons(d), "ScalingActive=False:FailedGetResourceMetric") {
					t.Errorf("%v, %s", d.Err, reasons(d))
				}
				return
			}
			if d.Err != nil || *d.metrics[0].Resource.Current.AverageUtilization != x.percent {
				t.Fatalf("%v, %+v", d.Err, d.metrics)
			}
		})
	}
}

// The first seed system's rule: cpu decides, and memory only while nothing is known of cpu.
func TestLeadingMetric(t *testing.T) {
	h := autoscaler(func(h *autoscalingv2.HorizontalPodAutoscaler) {
		m := api.CPUMetric(50)
		m.Resource.Name = corev1.ResourceMemory
		h.Spec.Metrics = append(h.Spec.Metrics, m)
		h.Annotations = map[string]string{api.UtilizationBasisAnnotation: api.BasisCapacity, api.LeadingMetricAnnotation: "cpu"}
	})
	const mi = 1 << 20 * 1000
	memory := each(2, 1000*mi)
	for _, x := range []struct {
		name string
		cpu  Reading
		want int32
	}{{"cpu is low", each(2, 500), 2}, {"cpu is not known", Reading{Err: errors.New("no")}, 4}} {
		in := input(h, pods(2), x.cpu, memory)
		in.NodeMemory = func(string) (int64, bool) { return 1000 << 20, true }
		if d := Decide(in); d.Replicas != x.want {
			t.Errorf("%s: %d\n%s", x.name, d.Replicas, strings.Join(d.Lines, "\n"))
		}
	}
}

// One pod an interval, both ways and at once, is what the first seed system's manifest becomes.
func TestSteps(t *testing.T) {
	one := func() *autoscalingv2.HPAScalingRules {
		return &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: new(int32(0)), SelectPolicy: new(autoscalingv2.MaxChangePolicySelect),
			Policies: []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PodsScalingPolicy, Value: 1, PeriodSeconds: 10}}}
	}
	h := autoscaler(func(h *autoscalingv2.HorizontalPodAutoscaler) {
		h.Spec.MaxReplicas = 4
		h.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: one(), ScaleDown: one()}
	})
	history, n, now := &History{}, int32(1), start
	var course []int32
	for step := range 20 {
		load := int64(1000)
		if step >= 10 {
			load = 0
		}
		in := input(h, pods(int(n)), each(int(n), load))
		in.History, in.Now = history, now
		d := Decide(in)
		if d.Rescale {
			d.Finish(in, nil)
			n = d.Replicas
		}
		course = append(course, n)
		now = now.Add(5 * time.Second)
	}
	if got, want := fmt.Sprint(course), "[2 2 3 3 4 4 4 4 4 4 3 3 2 2 1 1 1 1 1 1]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// When more was scaled in a period than a policy allows now, nothing is taken back.
func TestPolicyThatIsUsedUp(t *testing.T) {
	for _, x := range []struct {
		name string
		used int64
		past scaling
		up   bool
	}{{"up", 1000, scaling{change: 3, at: start.Add(-time.Second)}, true}, {"down", 0, scaling{change: 3, at: start.Add(-time.Second)}, false}} {
		rules := &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: new(int32(0)), SelectPolicy: new(autoscalingv2.MaxChangePolicySelect),
			Policies: []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PodsScalingPolicy, Value: 1, PeriodSeconds: 60}}}
		in := input(autoscaler(func(h *autoscalingv2.HorizontalPodAutoscaler) {
			h.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: rules, ScaleDown: rules}
		}), pods(5), each(5, x.used))
		if x.up {
			in.History.up = []scaling{x.past}
		} else {
			in.History.down = []scaling{x.past}
		}
		if d := Decide(in); d.Replicas != 5 || d.Rescale {
			t.Errorf("%s: %d\n%s", x.name, d.Replicas, strings.Join(d.Lines, "\n"))
		}
	}
}

// What the autoscaler itself has scaled to zero it looks at again; what others have, it does not.
func TestFromZero(t *testing.T) {
	zero := func(h *autoscalingv2.HorizontalPodAutoscaler) {
		h.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{{Type: autoscalingv2.ScaledToZero, Status: corev1.ConditionTrue}}
	}
	external := func(h *autoscalingv2.HorizontalPodAutoscaler) {
		h.Spec.Metrics = []autoscalingv2.MetricSpec{{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
			Metric: autoscalingv2.MetricIdentifier{Name: "q"},
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: resource.NewMilliQuantity(1000, resource.DecimalSI)}}}}
	}
	least := func(n int32) func(h *autoscalingv2.HorizontalPodAutoscaler) {
		return func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Spec.MinReplicas = &n }
	}
	for _, x := range []struct {
		name   string
		h      *autoscalingv2.HorizontalPodAutoscaler
		value  int64
		want   int32
		reason string
	}{
		{"there is something to do", autoscaler(zero, external, least(0)), 2500, 3, "ValidMetricFound"},
		{"there is nothing to do", autoscaler(zero, external, least(0)), 0, 0, "ValidMetricFound"},
		{"at least two now", autoscaler(zero, external, least(2)), 0, 2, "ValidMetricFound"},
		{"only metrics of pods now", autoscaler(zero, least(2)), 0, 0, "FailedGetResourceMetric"},
		{"set to zero by others", autoscaler(external, least(0)), 2500, 0, "ScalingDisabled"},
	} {
		in := input(x.h, nil, Reading{Values: []int64{x.value}})
		d := Decide(in)
		if d.Replicas != x.want || !strings.Contains(reasons(d), x.reason) {
			t.Errorf("%s: %d, %s", x.name, d.Replicas, reasons(d))
		}
	}
}

func TestWhatKeepsItFromDeciding(t *testing.T) {
	for _, x := range []struct {
		name       string
		in         func() *Input
		want       int32
		conditions string
		events     string
	}{
		{"nothing is measured", func() *Input { return input(autoscaler(), pods(2), Reading{Err: errors.New("away")}) }, 0,
			"AbleToScale=True:SucceededGetScale ScalingActive=False:FailedGetResourceMetric", "FailedGetResourceMetric FailedComputeMetricsReplicas"},
		{"no pods", func() *Input {
			in := input(autoscaler(), nil, each(1, 10))
			in.Scale.Wanted = 1
			return in
		}, 0, "AbleToScale=True:SucceededGetScale ScalingActive=False:FailedGetResourceMetric", "FailedGetResourceMetric FailedComputeMetricsReplicas"},
		{"set to zero by others", func() *Input { return input(autoscaler(), nil) }, 0, "AbleToScale=True:SucceededGetScale ScalingActive=False:ScalingDisabled", ""},
		{"too many", func() *Input { return input(autoscaler(), pods(12)) }, 10, "AbleToScale=True:SucceededGetScale", ""},
		{"a selector of others", func() *Input {
			in := input(autoscaler(), pods(2))
			in.Selector = &SelectorError{Event: "AmbiguousSelector", Condition: "AmbiguousSelector", Message: "m", Err: errors.New("e")}
			return in
		}, 0, "AbleToScale=True:SucceededGetScale ScalingActive=False:AmbiguousSelector", "AmbiguousSelector FailedComputeMetricsReplicas"},
	} {
		t.Run(x.name, func(t *testing.T) {
			d := Decide(x.in())
			var events []string
			for _, e := range d.Events {
				events = append(events, e.Reason)
			}
			if d.Replicas != x.want || reasons(d) != x.conditions || strings.Join(events, " ") != x.events {
				t.Errorf("%d, %s, %s", d.Replicas, reasons(d), events)
			}
		})
	}
}

// A target that cannot be told is not counted as scaled.
func TestFailedRescale(t *testing.T) {
	in := input(autoscaler(), pods(3), each(3, 100))
	d := Decide(in)
	d.Finish(in, errors.New("no"))
	if !strings.Contains(reasons(d), "AbleToScale=False:FailedUpdateScale") || d.Status.LastScaleTime != nil || d.Status.DesiredReplicas != 0 || d.Status.CurrentReplicas != 3 {
		t.Errorf("%s, %+v", reasons(d), d.Status)
	}
}

// Numbers that no cluster has break nothing.
func FuzzDecide(f *testing.F) {
	f.Add(int64(100), int64(50), int32(3), int64(100), uint8(0))
	f.Add(int64(math.MaxInt64), int64(1), int32(math.MaxInt32), int64(0), uint8(1))
	f.Add(int64(math.MinInt64), int64(-1), int32(-1), int64(math.MinInt64), uint8(2))
	f.Fuzz(func(t *testing.T, used, goal int64, now int32, request int64, kind uint8) {
		h := autoscaler()
		average := autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: resource.NewMilliQuantity(goal, resource.DecimalSI)}
		value := autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: resource.NewMilliQuantity(goal, resource.DecimalSI)}
		r := each(2, used)
		r.Values = []int64{used, used}
		switch kind % 5 {
		case 0:
			h.Spec.Metrics[0].Resource.Target.AverageUtilization = new(int32(goal))
		case 1:
			h.Spec.Metrics[0] = autoscalingv2.MetricSpec{Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricSource{Target: average}}
		case 2:
			h.Spec.Metrics[0] = autoscalingv2.MetricSpec{Type: autoscalingv2.ObjectMetricSourceType, Object: &autoscalingv2.ObjectMetricSource{Target: value}}
		case 3:
			h.Spec.Metrics[0] = autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{Target: average}}
		case 4:
			h.Spec.Metrics[0] = autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{Target: value}}
		}
		in := input(h, pods(3, func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = *resource.NewMilliQuantity(request, resource.DecimalSI)
		}), r)
		in.Scale = Scale{now, now}
		d := Decide(in)
		if d.Rescale {
			if d.Replicas < 0 || d.Replicas > h.Spec.MaxReplicas {
				t.Errorf("%d pods", d.Replicas)
			}
			d.Finish(in, nil)
		}
	})
}
