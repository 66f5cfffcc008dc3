package podautoscaler

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"syscall"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metrics "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/controller/loop"
	"minik8s/internal/controller/podautoscaler/decide"
	"minik8s/internal/controller/podautoscaler/metricsapi"
)

// still is an API in which nothing moves: each target has ten pods, and is told nothing.
type still struct{ client.Interface }

func (still) Scale(_ context.Context, key client.Key) (*autoscalingv1.Scale, error) {
	return &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 10}, Status: autoscalingv1.ScaleStatus{Replicas: 10, Selector: "app=" + key.Name}}, nil
}

func (still) SetScale(_ context.Context, _ client.Key, s *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
	return s, nil
}

func (still) Update(_ context.Context, obj api.Object, _ client.WriteOptions) (api.Object, error) {
	return obj, nil
}

// answer is what the API has of all pods, decoded.
type answer struct{ list metrics.PodMetricsList }

func (a *answer) Get(_ context.Context, _ string, _ url.Values, into any) error {
	*into.(*metrics.PodMetricsList) = a.list
	return nil
}

type mute struct{}

func (mute) Event(api.Object, string, string, string, ...any) {}

// BenchmarkRound is one round of 1,000 autoscalers over 10,000 pods of one namespace: everything that the controller does,
// without what the API costs. The figure asked is 0.1 s of one core.
func BenchmarkRound(b *testing.B) {
	const autoscalers, each = 1000, 10
	kinds := api.NewTable(api.Builtin()...)
	a := &answer{}
	c := New(still{}, nil, mute{}, kinds, metricsapi.New(a, kinds), Options{Settings: decide.Defaults, Log: slog.New(slog.DiscardHandler)})
	started := metav1.NewTime(time.Now().Add(-time.Hour))
	var hpas []*autoscalingv2.HorizontalPodAutoscaler
	var pods []*corev1.Pod
	for i := range autoscalers {
		name := fmt.Sprintf("web-%d", i)
		hpas = append(hpas, &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MinReplicas: new(int32(1)), MaxReplicas: 20, Metrics: []autoscalingv2.MetricSpec{api.CPUMetric(50)},
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name}}})
		for j := range each {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("%s-%d", name, j), Labels: map[string]string{"app": name, "tier": "front"}}}
			p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}}}}
			p.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &started,
				Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: started}}}
			pods = append(pods, p)
			a.list.Items = append(a.list.Items, metrics.PodMetrics{ObjectMeta: metav1.ObjectMeta{Name: p.Name, Labels: p.Labels}, Timestamp: metav1.Now(),
				Window:     metav1.Duration{Duration: 15 * time.Second},
				Containers: []metrics.ContainerMetrics{{Name: "c", Usage: corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(int64(30+i%40), resource.DecimalSI)}}}})
		}
	}
	ctx := b.Context()
	for i := range hpas { // what every pod belongs to is found out once, and then followed
		selector, _ := parse("app=" + hpas[i].Name)
		c.index.set(loop.Key{Namespace: "default", Name: hpas[i].Name}, "app="+hpas[i].Name, selector, func() []*corev1.Pod { return pods[i*each : (i+1)*each] })
	}
	b.ReportAllocs()
	before := processor(b)
	for b.Loop() {
		for _, h := range hpas {
			if err := c.sync(ctx, loop.Key{Namespace: "default", Name: h.Name}, h); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64((processor(b)-before).Milliseconds())/float64(b.N), "ms-of-a-core/round")
}

// processor is how much of the processor the process has used.
func processor(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
