package autoscale

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/api/dialect"
	"minik8s/internal/client"
	"minik8s/internal/ctl/brief"
	"minik8s/internal/ctl/change"
	"minik8s/internal/ctl/exit"
	"minik8s/internal/ctl/session"
)

// Options are what a command line says. Empty is what it does not say.
type Options struct {
	// Name is the autoscaler's; without it kubectl's way takes the target's.
	Name string
	// Target is the target's name in the seed system's way, which may have its namespace before a slash.
	Target   string
	Min, Max int
	// CPU and Memory are percentages in the seed system's way; in kubectl's "80%", or an amount.
	CPU, Memory string
	// Interval is how often at most one pod is added or removed, in seconds.
	Interval int
	DryRun   bool
}

// write makes the autoscaler.
func write(ctx context.Context, s *session.Session, h *autoscalingv2.HorizontalPodAutoscaler, o Options) error {
	_, err := s.API.Create(ctx, h, client.WriteOptions{FieldManager: "kubectl-autoscale", FieldValidation: "Strict", DryRun: o.DryRun})
	if apierrors.IsAlreadyExists(err) {
		return exit.Failf(exit.Conflict, "%s exists already: delete it first, or give the new one another name", brief.Ref(api.HorizontalPodAutoscalers, h.Name))
	}
	return err
}

func (o *Options) bounds() error {
	switch {
	case o.Max < 1:
		return exit.Usagef("--max: it is %d, and at least 1 pod is needed", o.Max)
	case o.Min > o.Max:
		return exit.Usagef("--min: it is %d, more than --max, which is %d", o.Min, o.Max)
	}
	return nil
}

// Seed makes an autoscaler as the first seed system does: of a ReplicaSet, or else of a Deployment or a
// ReplicationController with that name, in steps of one pod.
func Seed(ctx context.Context, s *session.Session, o Options) error {
	if err := o.bounds(); err != nil {
		return err
	}
	namespace, name := s.Namespace, o.Target
	if ns, rest, ok := strings.Cut(o.Target, "/"); ok {
		namespace, name = ns, rest
	}
	kind, err := targetOf(ctx, s, namespace, name)
	if err != nil {
		return err
	}
	metrics := map[string]any{}
	var words []string
	for _, m := range []struct{ flag, word, value string }{{"-c", "CPUUtilizationPercentage", o.CPU}, {"-m", "MemUtilizationPercentage", o.Memory}} {
		if m.value == "" {
			continue
		}
		percent, err := strconv.ParseFloat(strings.TrimSuffix(m.value, "%"), 64)
		if err != nil || !(percent > 0) {
			return exit.Usagef("%s: expected a number of percent above 0, got %q", m.flag, m.value)
		}
		metrics[m.word] = percent
		words = append(words, fmt.Sprintf("%s=%s", m.word, strings.TrimSuffix(m.value, "%")))
	}
	if len(metrics) == 0 {
		return exit.Usagef("autoscale %s: how busy are the pods to be? -c PERCENT of cpu, or -m PERCENT of memory", o.Name)
	}
	doc := map[string]any{"apiVersion": api.HorizontalPodAutoscalers.APIVersion(), "kind": api.HorizontalPodAutoscalers.Kind,
		"metadata": map[string]any{"name": o.Name, "namespace": namespace},
		"spec": map[string]any{"minReplicas": o.Min, "maxReplicas": o.Max, "metrics": metrics, "scaleInterval": o.Interval,
			"scaleTargetRef": map[string]any{"apiVersion": kind.APIVersion(), "kind": kind.Kind, "name": name}}}
	if _, err := dialect.For(api.HorizontalPodAutoscalers)(doc); err != nil {
		return exit.Usagef("%v", err)
	}
	h := &autoscalingv2.HorizontalPodAutoscaler{}
	data, err := json.Marshal(doc)
	if err == nil {
		err = json.Unmarshal(data, h)
	}
	if err != nil {
		return err
	}
	s.Say("Config hpa: %s/%s", namespace, o.Name)
	s.Say("Target: %s %s/%s", kind.Kind, namespace, name)
	s.Say("Metrics: %s", strings.Join(words, ", "))
	s.Say("Replicas: %d to %d", o.Min, o.Max)
	s.Say("Interval: %ds", o.Interval)
	if err := write(ctx, s, h, o); err != nil {
		return err
	}
	s.Say("ok")
	return nil
}

// targetOf finds out of which kind a target is.
func targetOf(ctx context.Context, s *session.Session, namespace, name string) (*api.Kind, error) {
	for _, kind := range []*api.Kind{api.ReplicaSets, api.Deployments, api.ReplicationControllers} {
		_, err := s.API.Get(ctx, client.Key{Kind: kind, Namespace: namespace, Name: name})
		if err == nil {
			return kind, nil
		}
		if !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	return nil, exit.Failf(exit.NotFound, "--target: there is no replica set, deployment or replication controller %q in the namespace %s", name, namespace)
}

// Kinds are those that kubectl's way is for.
var Kinds = change.Scalable

// Kubectl makes an autoscaler of an object as kubectl does.
func Kubectl(ctx context.Context, s *session.Session, obj api.Object, o Options) error {
	if err := o.bounds(); err != nil {
		return err
	}
	kind := api.KindOf(obj)
	h := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: o.Name}}
	if h.Name == "" {
		h.Name = obj.GetName()
	}
	h.Spec = autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: int32(min(o.Max, 1<<30)),
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: kind.APIVersion(), Kind: kind.Kind, Name: obj.GetName()}}
	if o.Min > 0 {
		h.Spec.MinReplicas = new(int32(o.Min))
	}
	for _, m := range []struct {
		flag, value, unit string
		of                corev1.ResourceName
	}{{"--cpu", o.CPU, "m", corev1.ResourceCPU}, {"--memory", o.Memory, "Mi", corev1.ResourceMemory}} {
		if m.value == "" {
			continue
		}
		target, err := goal(m.value, m.unit)
		if err != nil {
			return exit.Usagef("%s: %q is neither a percentage of what the pods request, as in 80%%, nor an amount, as in 500%s", m.flag, m.value, m.unit)
		}
		h.Spec.Metrics = append(h.Spec.Metrics, autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{Name: m.of, Target: target}})
	}
	if err := write(ctx, s, h, o); err != nil {
		return err
	}
	s.Say("%s autoscaled", brief.Ref(api.HorizontalPodAutoscalers, h.Name))
	return nil
}

// goal reads "80%", or an amount; one without a unit is in thousandths of a core, or in Mi.
func goal(text, unit string) (autoscalingv2.MetricTarget, error) {
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		n, err := strconv.ParseInt(percent, 10, 32)
		return autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(n))}, err
	}
	if _, err := strconv.Atoi(text); err == nil {
		text += unit
	}
	q, err := resource.ParseQuantity(text)
	return autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: &q}, err
}
