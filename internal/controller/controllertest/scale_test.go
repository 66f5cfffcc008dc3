package controllertest

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
)

// TestScaleAndEviction tries the two subresources that workloads need, on the registry itself.
func TestScaleAndEviction(t *testing.T) {
	c := New(t)
	ctx := c.Context()
	Create(c, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(2)), Selector: Selector("web"), Template: Template("web", "x:1")}})
	get := func() *autoscalingv1.Scale {
		e, err := c.reg.Get(ctx, registrytest.Ask("get", api.ReplicaSets, "default", "web", "scale"))
		if err != nil {
			t.Fatal(err)
		}
		return c.reg.Strategy(api.ReplicaSets).FormOf("scale").Of(e.Object()).(*autoscalingv1.Scale)
	}
	s := get()
	if s.Spec.Replicas != 2 || s.Status.Selector != "app=web" || s.ResourceVersion == "" {
		t.Errorf("%+v", s)
	}
	old := s.DeepCopy()
	s.Spec.Replicas = 5
	if _, err := c.reg.Update(ctx, registrytest.Ask("update", api.ReplicaSets, "default", "web", "scale"), s, registry.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.reg.Update(ctx, registrytest.Ask("update", api.ReplicaSets, "default", "web", "scale"), old, registry.WriteOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an old version was taken: %v", err)
	}
	if _, _, err := c.reg.Patch(ctx, registrytest.Ask("patch", api.ReplicaSets, "default", "web", "scale"),
		registry.Patch{Type: types.MergePatchType, Data: []byte(`{"spec":{"replicas":7}}`), Validation: "Strict"}, registry.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if s = get(); s.Spec.Replicas != 7 {
		t.Errorf("%+v", s)
	}
	rs := Until(c, "the generation counts", api.ReplicaSets, func(list []*appsv1.ReplicaSet) bool { return list[0].Generation == 3 })[0]
	if *rs.Spec.Replicas != 7 {
		t.Errorf("%+v", rs.Spec)
	}
	if _, _, err := c.reg.Patch(ctx, registrytest.Ask("patch", api.ReplicaSets, "default", "web", "scale"),
		registry.Patch{Type: types.MergePatchType, Data: []byte(`{"spec":{"replicas":-1}}`), Validation: ""}, registry.WriteOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("-1 replicas: %v", err)
	}
	if c.reg.Strategy(api.Pods).FormOf("scale") != nil {
		t.Error("a pod has a scale")
	}

	Create(c, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: Template("p", "x:1").Spec})
	dry := registry.WriteOptions{DryRun: true}
	if _, err := c.reg.Act(ctx, registrytest.Ask("create", api.Pods, "default", "p", "eviction"), &policyv1.Eviction{}, dry); err != nil {
		t.Fatal(err)
	}
	Until(c, "a dry run deletes nothing", api.Pods, func(list []*corev1.Pod) bool { return len(list) == 1 })
	other := &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("other")}}
	if _, err := c.reg.Act(ctx, registrytest.Ask("create", api.Pods, "default", "p", "eviction"), other, registry.WriteOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("another pod was meant: %v", err)
	}
	if _, err := c.reg.Act(ctx, registrytest.Ask("create", api.Pods, "default", "p", "eviction"), &policyv1.Eviction{}, registry.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	Until(c, "evicted", api.Pods, func(list []*corev1.Pod) bool { return len(list) == 0 })
}
