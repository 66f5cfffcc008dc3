package hosts_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/hosts"
)

// script is a pod's template that runs a script on w1.
func script(app, text string, restart corev1.RestartPolicy) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{NodeSelector: map[string]string{corev1.LabelHostname: "w1"}, RestartPolicy: restart, TerminationGracePeriodSeconds: new(int64(1)),
			Containers: []corev1.Container{{Name: "c", Image: "busybox", ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"sh", "-c", text}}}}}
}

// The daemon of a worker, and that of its only master, is killed at any moment, while Jobs run on the worker and a DaemonSet is
// updated there. Each index of a Job is done once, no pod fails, and each update comes to its end.
func TestKilledAwayFromItsMaster(t *testing.T) {
	t.Parallel()
	lab := newLab(t)
	prepared(t, lab, "host m1\nhost w1\nstart m1\njoin w1 to m1\nexpect node w1 Ready\n")
	m1, w1 := lab.Host("m1"), lab.Host("w1")
	c := func() client.Interface {
		t.Helper()
		api, err := m1.API()
		if err != nil {
			t.Fatal(err)
		}
		return api
	}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }
	agent := script("agent", "trap exit TERM; while :; do sleep 1000 & wait $!; done", corev1.RestartPolicyAlways)
	if _, err := c().Create(t.Context(), &appsv1.DaemonSet{ObjectMeta: meta("agent"), Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: agent.Labels}, Template: agent}}, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	pods := func(app string) []*corev1.Pod {
		all, _, err := client.All[*corev1.Pod](t.Context(), c(), api.Pods, client.ListOptions{Namespace: "default", Labels: labels.SelectorFromSet(labels.Set{"app": app})})
		if err != nil {
			return nil // it is asked again
		}
		return all
	}
	updated := func(round string) func() bool {
		return func() bool {
			d, err := client.Get[*appsv1.DaemonSet](t.Context(), c(), client.Key{Kind: api.DaemonSets, Namespace: "default", Name: "agent"})
			all := pods("agent")
			return err == nil && d.Status.ObservedGeneration == d.Generation && d.Status.NumberAvailable == 1 &&
				len(all) == 1 && all[0].Annotations["round"] == round && all[0].DeletionTimestamp == nil
		}
	}
	eventually(t, "the DaemonSet runs", updated(""))
	for round, victim := range []*hosts.Host{w1, m1, w1, m1, w1} {
		name := fmt.Sprint("job-", round)
		const completions = 5
		if _, err := c().Create(t.Context(), &batchv1.Job{ObjectMeta: meta(name), Spec: batchv1.JobSpec{Completions: new(int32(completions)),
			Parallelism: new(int32(2)), BackoffLimit: new(int32(20)), CompletionMode: new(batchv1.IndexedCompletion),
			Template: script(name, "sleep 0.1", corev1.RestartPolicyNever)}}, client.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		patch := client.Patch{Type: types.MergePatchType, Data: fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{"round":"%d"}}}}}`, round)}
		if _, err := c().Patch(t.Context(), client.Key{Kind: api.DaemonSets, Namespace: "default", Name: "agent"}, patch, client.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		for again := range 2 { // any moment will do: nothing is waited for
			time.Sleep(time.Duration(60+70*round+150*again) * time.Millisecond)
			if err := victim.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if err := victim.Start(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the master answers", func() bool { return m1.Ready(t.Context()) })
		}
		var job *batchv1.Job
		eventually(t, name+" is complete", func() (done bool) {
			var err error
			job, err = client.Get[*batchv1.Job](t.Context(), c(), client.Key{Kind: api.Jobs, Namespace: "default", Name: name})
			return err == nil && job.Status.CompletionTime != nil
		})
		if s := job.Status; s.Succeeded != completions || s.Failed != 0 || s.CompletedIndexes != fmt.Sprintf("0-%d", completions-1) {
			t.Errorf("%s, with %s killed: %+v", name, victim.Name, s)
			for _, p := range pods(name) {
				t.Logf("%s: %s %s %+v", p.Name, p.Status.Phase, p.Status.Message, p.Status.ContainerStatuses)
			}
		}
		done := map[string]int{}
		for _, p := range pods(name) {
			if p.Status.Phase == corev1.PodSucceeded {
				done[p.Annotations[batchv1.JobCompletionIndexAnnotation]]++
			}
		}
		for index, n := range done {
			if n != 1 {
				t.Errorf("%s: index %s was done %d times", name, index, n)
			}
		}
		eventually(t, "the DaemonSet is updated", updated(fmt.Sprint(round)))
	}
	eventually(t, "one container runs", func() bool { return w1.Containers() == 1 })
}
