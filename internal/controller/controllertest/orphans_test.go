package controllertest_test

import (
	"log/slog"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	ct "minik8s/internal/controller/controllertest"
	"minik8s/internal/controller/gc"
)

// TestDeletedWithoutAWord: a job that is deleted without a propagation policy leaves its pods, and no finalizer holds
// them any longer; they can be deleted.
func TestDeletedWithoutAWord(t *testing.T) {
	w := newWorld(t, 0, "job-controller")
	w.heal()
	w.Start(gc.New(w.As("gc-controller"), w.Views(), w.Kinds(), slog.New(slog.DiscardHandler)).Run)
	w.Hollow(nil, "n1")
	running := func(name string) {
		ct.Create(w.Cluster, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{
			Completions: new(int32(3)), Parallelism: new(int32(3)), Template: jobTemplate()}})
		ct.Until(w.Cluster, "running", api.Jobs, func(list []*batchv1.Job) bool { return len(list) == 1 && list[0].Status.Active == 3 })
	}
	remove := func(name string, opts *metav1.DeleteOptions) {
		if _, err := w.Admin().Delete(w.Context(), client.Key{Kind: api.Jobs, Namespace: "default", Name: name}, opts); err != nil {
			t.Fatal(err)
		}
		ct.Until(w.Cluster, "gone", api.Jobs, func(list []*batchv1.Job) bool { return len(list) == 0 })
	}
	running("left")
	remove("left", nil)
	left := ct.Until(w.Cluster, "let go of", api.Pods, func(list []*corev1.Pod) bool {
		return !slices.ContainsFunc(list, func(p *corev1.Pod) bool { return len(p.OwnerReferences)+len(p.Finalizers) > 0 })
	})
	if len(left) != 3 || slices.ContainsFunc(left, func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil }) {
		t.Fatalf("of 3 pods there are %d: %+v", len(left), left)
	}
	running("taken")
	remove("taken", &metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
	ct.Until(w.Cluster, "only the others are there", api.Pods, func(list []*corev1.Pod) bool { return len(list) == 3 })
}
