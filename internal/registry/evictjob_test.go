package registry_test

import (
	"context"
	"log/slog"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/local"
	"minik8s/internal/controller/job"
	"minik8s/internal/controller/sightings"
	"minik8s/internal/events"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
)

// until waits until the objects of a kind are as ok wants them.
func until[T api.Object](t *testing.T, c client.Interface, kind *api.Kind, what string, ok func([]T) bool) []T {
	t.Helper()
	w, err := c.Watch(t.Context(), kind, client.WatchOptions{Bookmarks: true})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for range w.Events() {
		list, _, err := client.All[T](t.Context(), c, kind, client.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if ok(list) {
			return list
		}
	}
	t.Fatalf("not %s", what)
	return nil
}

// setStatus is what a kubelet does: it says how the pod is, and leaves the conditions of others.
func setStatus(t *testing.T, c client.Interface, pod *corev1.Pod, phase corev1.PodPhase, exit int32) {
	t.Helper()
	for {
		now, err := client.Get[*corev1.Pod](t.Context(), c, client.KeyOf(pod))
		if err != nil {
			t.Fatal(err)
		}
		now = now.DeepCopy()
		now.Status.Phase = phase
		if phase == corev1.PodFailed {
			now.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", Image: "i",
				State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: exit, FinishedAt: metav1.Now()}}}}
		}
		_, err = c.Update(t.Context(), now, client.WriteOptions{Subresource: "status"})
		if apierrors.IsConflict(err) { // the controller has written the pod meanwhile
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
}

// An evicted pod, as drain makes them, is no failure of a Job whose policy ignores disruptions: it is made anew,
// although the Job allows no failure. A pod of one without such a policy, or one that fails by itself, is.
func TestEvictedPodOfAJob(t *testing.T) {
	ignore := &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{Action: batchv1.PodFailurePolicyActionIgnore,
		OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget}}}}}
	for _, x := range []struct {
		name    string
		policy  *batchv1.PodFailurePolicy
		evict   bool
		ignored bool
	}{
		{name: "ignored", policy: ignore, evict: true, ignored: true},
		{name: "no policy", evict: true},
		{name: "its own failure", policy: ignore},
	} {
		t.Run(x.name, func(t *testing.T) {
			reg := registrytest.New(t)
			admin := local.New(reg, registry.System)
			startJobs(t, reg)
			if _, err := admin.Create(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "work"},
				Spec: batchv1.JobSpec{BackoffLimit: new(int32(0)), PodFailurePolicy: x.policy, Template: corev1.PodTemplateSpec{
					Spec: corev1.PodSpec{NodeName: "n", RestartPolicy: corev1.RestartPolicyNever,
						Containers: []corev1.Container{{Name: "c", Image: "i"}}}}}}, client.WriteOptions{}); err != nil {
				t.Fatal(err)
			}
			pod := until(t, admin, api.Pods, "begun", func(list []*corev1.Pod) bool { return len(list) == 1 })[0]
			setStatus(t, admin, pod, corev1.PodRunning, 0)
			if x.evict {
				if _, err := reg.Act(t.Context(), registrytest.Ask("create", api.Pods, "default", pod.Name, "eviction"), &policyv1.Eviction{}, registry.WriteOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			setStatus(t, admin, pod, corev1.PodFailed, 143)
			if x.evict { // the kubelet lets it go
				if _, err := admin.Delete(t.Context(), client.KeyOf(pod), &metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
					t.Fatal(err)
				}
			}
			if x.ignored {
				until(t, admin, api.Pods, "made anew", func(list []*corev1.Pod) bool { return len(list) == 1 && list[0].UID != pod.UID })
			}
			until(t, admin, api.Jobs, "as it should be", func(list []*batchv1.Job) bool {
				s := &list[0].Status
				if x.ignored {
					return s.Active == 1 && s.Failed == 0 && len(s.Conditions) == 0
				}
				return s.Failed == 1 && len(s.Conditions) > 0 && s.Conditions[len(s.Conditions)-1].Type == batchv1.JobFailed
			})
		})
	}
}

// startJobs runs the Jobs' controller until the test ends.
func startJobs(t *testing.T, reg *registry.Registry) {
	t.Helper()
	as := local.New(reg, registry.Part("job-controller"))
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		if err := job.New(as, nil, events.New(as, "t", "", nil), sightings.New(), slog.New(slog.DiscardHandler)).Run(ctx, func() { close(ready) }); err != nil {
			t.Error(err)
		}
	}()
	<-ready
	t.Cleanup(func() {
		cancel()
		<-done
	})
}
