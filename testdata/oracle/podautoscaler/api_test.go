package podautoscaler

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	upstreamdefaults "k8s.io/kubernetes/pkg/apis/autoscaling/v2"
	upstreamvalidation "k8s.io/kubernetes/pkg/apis/autoscaling/validation"

	"minik8s/internal/api"
	"minik8s/internal/api/validation"
)

// rarely is mostly the first value, which is right.
func rarely[T any](rng *rand.Rand, right T, others ...T) T {
	if rng.IntN(12) > 0 {
		return right
	}
	return others[rng.IntN(len(others))]
}

// odd makes some fields of a generated autoscaler odd.
func odd(w *world) *autoscalingv2.HorizontalPodAutoscaler {
	rng := w.rng
	h := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: rarely(rng, "web", "Web", "a.b", "")}, Spec: *w.spec("web")}
	s := &h.Spec
	s.MinReplicas = rarely(rng, s.MinReplicas, nil, new(int32(-1)), new(int32(0)), new(int32(50)))
	s.MaxReplicas = rarely(rng, s.MaxReplicas, 0, -1)
	s.ScaleTargetRef.Name = rarely(rng, s.ScaleTargetRef.Name, "", "a/b", "..")
	s.ScaleTargetRef.Kind = rarely(rng, s.ScaleTargetRef.Kind, "", "a%b", "ReplicationController")
	s.ScaleTargetRef.APIVersion = rarely(rng, s.ScaleTargetRef.APIVersion, "", "v1", "a/b/c")
	for i := range s.Metrics {
		m := &s.Metrics[i]
		m.Type = rarely(rng, m.Type, "", "Other", autoscalingv2.PodsMetricSourceType)
		switch rng.IntN(12) {
		case 0:
			m.Resource = &autoscalingv2.ResourceMetricSource{Name: pick(rng, corev1.ResourceName("cpu"), "")}
		case 1:
			m.External = &autoscalingv2.ExternalMetricSource{}
		case 2:
			*m = autoscalingv2.MetricSpec{Type: m.Type}
		}
		var t *autoscalingv2.MetricTarget
		switch {
		case m.Object != nil:
			t = &m.Object.Target
			m.Object.Metric.Name = rarely(rng, "m", "", "a/b", ".")
			m.Object.DescribedObject.APIVersion = rarely(rng, "v1", "", "a/b/c", "apps/v1")
		case m.External != nil:
			t = &m.External.Target
			m.External.Metric.Name = rarely(rng, "m", "", "a/b")
		case m.Pods != nil:
			t = &m.Pods.Target
		case m.Resource != nil:
			t = &m.Resource.Target
		case m.ContainerResource != nil:
			t = &m.ContainerResource.Target
			m.ContainerResource.Container = rarely(rng, "a", "", "A b")
			m.ContainerResource.Name = rarely(rng, corev1.ResourceCPU, "", "pods", "example.com/gpu", "a b", "hugepages-2Mi", "ephemeral-storage", "a/b/c")
		default:
			continue
		}
		t.Type = rarely(rng, t.Type, "", "Other")
		t.Value = rarely(rng, t.Value, nil, quantity(0), quantity(-1), quantity(5))
		t.AverageValue = rarely(rng, t.AverageValue, nil, quantity(0), quantity(-1), quantity(5))
		t.AverageUtilization = rarely(rng, t.AverageUtilization, nil, new(int32(0)), new(int32(-1)), new(int32(5)))
	}
	if b := s.Behavior; b != nil {
		for _, r := range []*autoscalingv2.HPAScalingRules{b.ScaleUp, b.ScaleDown} {
			r.StabilizationWindowSeconds = rarely(rng, r.StabilizationWindowSeconds, new(int32(-1)), new(int32(3601)), new(int32(3600)))
			r.SelectPolicy = rarely(rng, r.SelectPolicy, new(autoscalingv2.ScalingPolicySelect("Other")))
			r.Tolerance = rarely(rng, r.Tolerance, quantity(-1))
			r.Policies = rarely(rng, r.Policies, nil)
			for i := range r.Policies {
				r.Policies[i].Type = rarely(rng, r.Policies[i].Type, "", "Other")
				r.Policies[i].Value = rarely(rng, r.Policies[i].Value, 0, -1)
				r.Policies[i].PeriodSeconds = rarely(rng, r.Policies[i].PeriodSeconds, 0, -1, 1801, 1800)
			}
		}
	}
	return h
}

func refused(errs field.ErrorList) string {
	var out []string
	for _, e := range errs {
		out = append(out, fmt.Sprintf("%s %s", e.Field, e.Type))
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), "\n")
}

// Ours refuses what Kubernetes' validation refuses, at the same fields.
func TestValidationAsUpstream(t *testing.T) {
	bad := 0
	for seed := range uint64(3000) {
		h := odd(newWorld(seed))
		internal := &autoscaling.HorizontalPodAutoscaler{}
		if err := legacyscheme.Scheme.Convert(h, internal, nil); err != nil {
			t.Fatal(err)
		}
		opts := upstreamvalidation.HorizontalPodAutoscalerSpecValidationOptions{
			ScaleTargetRefValidationOptions: upstreamvalidation.CrossVersionObjectReferenceValidationOptions{AllowEmptyAPIGroup: h.Spec.ScaleTargetRef.Kind == "ReplicationController"},
			ObjectMetricsValidationOptions:  upstreamvalidation.CrossVersionObjectReferenceValidationOptions{AllowEmptyAPIGroup: true}}
		want := refused(upstreamvalidation.ValidateHorizontalPodAutoscaler(internal, opts))
		got := refused(append(validation.ObjectMeta(h, true), validation.HorizontalPodAutoscaler(h)...))
		if want != "" {
			bad++
		}
		if got != want {
			t.Fatalf("seed %d:\nours\n%s\n\nupstream\n%s\n\n%+v", seed, got, want, h.Spec)
		}
	}
	if bad < 500 || bad > 2800 {
		t.Errorf("%d of 3000 are refused", bad)
	}
}

func asJSON(t *testing.T, v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// autoscaling/v1 shows what Kubernetes' conversion shows, and reads it as that does.
func TestV1AsUpstream(t *testing.T) {
	for seed := range uint64(3000) {
		w := newWorld(seed)
		h := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Annotations: map[string]string{"a": "b"}}, Spec: *w.spec("web")}
		for i := range h.Spec.Metrics {
			if r := h.Spec.Metrics[i].Resource; r != nil && w.chance(0.7) {
				current := autoscalingv2.MetricValueStatus{AverageValue: quantity(5), AverageUtilization: new(int32(seed % 100))}
				h.Status.CurrentMetrics = append(h.Status.CurrentMetrics, autoscalingv2.MetricStatus{Type: "Resource", Resource: &autoscalingv2.ResourceMetricStatus{Name: r.Name, Current: current}})
			}
		}
		h.Status.CurrentReplicas, h.Status.DesiredReplicas, h.Status.ObservedGeneration = 2, 3, new(int64(4))
		if w.chance(0.5) {
			h.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{{Type: "AbleToScale", Status: "True", Reason: "r", Message: "m"}}
		}
		internal, want := &autoscaling.HorizontalPodAutoscaler{}, &autoscalingv1.HorizontalPodAutoscaler{}
		if err := legacyscheme.Scheme.Convert(h.DeepCopy(), internal, nil); err != nil {
			t.Fatal(err)
		}
		if err := legacyscheme.Scheme.Convert(internal, want, nil); err != nil {
			t.Fatal(err)
		}
		view := api.HorizontalPodAutoscalersV1.View
		got := view.Shown(h).(*autoscalingv1.HorizontalPodAutoscaler)
		if g, w := asJSON(t, got), asJSON(t, want); g != w {
			t.Fatalf("seed %d is shown as\n%s\nupstream\n%s", seed, g, w)
		}
		back, backInternal := &autoscalingv2.HorizontalPodAutoscaler{}, &autoscaling.HorizontalPodAutoscaler{}
		if err := legacyscheme.Scheme.Convert(want.DeepCopy(), backInternal, nil); err != nil {
			t.Fatal(err)
		}
		if err := legacyscheme.Scheme.Convert(backInternal, back, nil); err != nil {
			t.Fatal(err)
		}
		upstreamdefaults.SetDefaults_HorizontalPodAutoscaler(back)
		stored := view.Stored(got).(*autoscalingv2.HorizontalPodAutoscaler)
		upstreamdefaults.SetDefaults_HorizontalPodAutoscaler(stored)
		if g, w := asJSON(t, stored), asJSON(t, back); g != w {
			t.Fatalf("seed %d is read as\n%s\nupstream\n%s", seed, g, w)
		}
	}
}
