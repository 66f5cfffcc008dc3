package tainteviction

import (
	"context"
	"log/slog"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/local"
	"minik8s/internal/controller/sightings"
	"minik8s/internal/events"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
)

func taint(key string, since time.Time) corev1.Taint {
	at := metav1.NewTime(since)
	return corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute, TimeAdded: &at}
}

func TestDecide(t *testing.T) {
	now := time.Now()
	seconds := func(key string, n int64) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, TolerationSeconds: &n}
	}
	for _, x := range []struct {
		name   string
		taints []corev1.Taint
		tol    []corev1.Toleration
		want   decision
	}{
		{"no taint", nil, nil, decision{}},
		{"not tolerated", []corev1.Taint{taint("a", now)}, nil, decision{evict: true}},
		{"tolerated for ever", []corev1.Taint{taint("a", now)}, []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, decision{}},
		{"for a while", []corev1.Taint{taint("a", now.Add(-10*time.Second))}, []corev1.Toleration{seconds("a", 30)}, decision{after: 20 * time.Second}},
		{"the while is over", []corev1.Taint{taint("a", now.Add(-31*time.Second))}, []corev1.Toleration{seconds("a", 30)}, decision{evict: true}},
		{"the shorter of two", []corev1.Taint{taint("a", now), taint("b", now)}, []corev1.Toleration{seconds("a", 30), seconds("b", 5)}, decision{after: 5 * time.Second}},
		{"one of two", []corev1.Taint{taint("a", now), taint("b", now)}, []corev1.Toleration{seconds("a", 30)}, decision{evict: true}},
		{"NoSchedule sends nobody away", []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}, nil, decision{}},
		{"another value", []corev1.Taint{{Key: "a", Value: "x", Effect: corev1.TaintEffectNoExecute, TimeAdded: &metav1.Time{Time: now}}}, []corev1.Toleration{{Key: "a", Value: "y"}}, decision{evict: true}},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Tolerations: x.tol}}
		if got := decide(pod, &corev1.Node{Spec: corev1.NodeSpec{Taints: x.taints}}, func(t *corev1.Taint) time.Time { return t.TimeAdded.Time }, now); got != x.want {
			t.Errorf("%s: %+v, want %+v", x.name, got, x.want)
		}
	}
}

// Through the registry: the pod that tolerates stays, the other goes.
func TestEvicts(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c := local.New(registrytest.New(t), registry.System)
	create := func(obj api.Object) {
		t.Helper()
		if _, err := c.Create(ctx, obj, client.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	for name, tol := range map[string][]corev1.Toleration{"goes": nil, "stays": {{Operator: corev1.TolerationOpExists}}} {
		create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec: corev1.PodSpec{NodeName: "n", Tolerations: tol, Containers: []corev1.Container{{Name: "c", Image: "i"}}}})
	}
	quiet := slog.New(slog.DiscardHandler)
	go New(c, nil, events.New(c, "test", "", quiet), sightings.New(), quiet).Run(ctx, func() {}) //nolint:errcheck // it ends with ctx
	node, err := client.Get[*corev1.Node](ctx, c, client.Key{Kind: api.Nodes, Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	w, err := c.Watch(ctx, api.Pods, client.WatchOptions{Namespace: "default", ResourceVersion: node.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	upd := node.DeepCopy()
	upd.Spec.Taints = []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectNoExecute}}
	if _, err := c.Update(ctx, upd, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	for e := range w.Events() {
		if e.Object == nil || e.Object.GetDeletionTimestamp() == nil {
			continue
		}
		if e.Object.GetName() != "goes" {
			t.Fatalf("%s was evicted", e.Object.GetName())
		}
		if cs := e.Object.(*corev1.Pod).Status.Conditions; len(cs) == 0 || cs[len(cs)-1].Type != corev1.DisruptionTarget {
			t.Errorf("it does not say why: %v", cs)
		}
		break
	}
	if _, err := c.Get(ctx, client.Key{Kind: api.Pods, Namespace: "default", Name: "stays"}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}
