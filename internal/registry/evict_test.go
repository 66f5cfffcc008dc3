package registry_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/local"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
)

// An evicted pod says that it was disrupted, once the eviction is sure to take place.
func TestEvict(t *testing.T) {
	reg := registrytest.New(t)
	admin := local.New(reg, registry.System)
	for _, x := range []struct {
		name    string
		options func(*corev1.Pod) *metav1.DeleteOptions
		dry     bool
		refused bool
		evicted bool
	}{
		{name: "plain", evicted: true},
		{name: "a dry run", dry: true},
		{name: "a dry run in the body", options: func(*corev1.Pod) *metav1.DeleteOptions {
			return &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
		}},
		{name: "this very pod", evicted: true, options: func(p *corev1.Pod) *metav1.DeleteOptions {
			return &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(p.UID))}
		}},
		{name: "this very version", evicted: true, options: func(p *corev1.Pod) *metav1.DeleteOptions {
			return &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &p.ResourceVersion}}
		}},
		{name: "another pod", refused: true, options: func(*corev1.Pod) *metav1.DeleteOptions {
			return &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("other")}
		}},
		{name: "another version", refused: true, options: func(*corev1.Pod) *metav1.DeleteOptions {
			return &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: new("1")}}
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			// The node's kubelet is not there to say that the pod has ended.
			obj, err := admin.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "p-"},
				Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c", Image: "i"}}}}, client.WriteOptions{})
			if err != nil {
				t.Fatal(err)
			}
			pod := obj.(*corev1.Pod)
			eviction := &policyv1.Eviction{}
			if x.options != nil {
				eviction.DeleteOptions = x.options(pod)
			}
			_, err = reg.Act(t.Context(), registrytest.Ask("create", api.Pods, "default", pod.Name, "eviction"), eviction, registry.WriteOptions{DryRun: x.dry})
			if (err != nil) != x.refused || err != nil && !apierrors.IsConflict(err) {
				t.Fatal(err)
			}
			now, err := client.Get[*corev1.Pod](t.Context(), admin, client.KeyOf(pod))
			if err != nil {
				t.Fatal(err)
			}
			said := slices.ContainsFunc(now.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == "EvictionByEvictionAPI" &&
					c.Message == "Eviction API: evicting" && !c.LastTransitionTime.IsZero()
			})
			if deleted := now.DeletionTimestamp != nil; said != x.evicted || deleted != x.evicted {
				t.Errorf("said %v, deleted %v: %+v", said, deleted, now.Status.Conditions)
			}
		})
	}
}
