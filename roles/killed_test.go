package roles_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// template is the template of pods that run a script.
func template(app, script string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}}, Spec: shell(app, script).Spec}
}

func selector(app string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
}

func (p *process) make(c client.Interface, obj api.Object) {
	p.t.Helper()
	if _, err := c.Create(context.Background(), obj, client.WriteOptions{}); err != nil {
		p.t.Fatal(err)
	}
}

// pods are those of an app.
func pods(c client.Interface, app string) []*corev1.Pod {
	list, _, err := client.All[*corev1.Pod](context.Background(), c, api.Pods,
		client.ListOptions{Namespace: "default", Labels: labels.SelectorFromSet(labels.Set{"app": app})})
	if err != nil {
		return nil // the caller asks again
	}
	return list
}

// An indexed Job that the daemon's death interrupts, at any moment, completes each index once and counts
// each pod once; a container whose start was cut off is made anew in the same pod, and none fails.
func TestKilledInAJob(t *testing.T) {
	needRoot(t)
	p := newProcess(t)
	c := p.up()
	const completions = 5
	for round := range 3 {
		app := fmt.Sprint("job-", round)
		tmpl := template(app, "sleep 0.1")
		tmpl.Spec.RestartPolicy = corev1.RestartPolicyNever // a start taken for a failure would cost a pod, and ten seconds
		p.make(c, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: app}, Spec: batchv1.JobSpec{
			Completions: new(int32(completions)), Parallelism: new(int32(2)), BackoffLimit: new(int32(20)),
			CompletionMode: new(batchv1.IndexedCompletion), Template: tmpl}})
		for range 2 {
			pause(time.Duration(100+round*70) * time.Millisecond)
			p.kill()
			c = p.up()
		}
		key := client.Key{Kind: api.Jobs, Namespace: "default", Name: app}
		var job *batchv1.Job
		p.eventually("the job complete", func() bool {
			var err error
			job, err = client.Get[*batchv1.Job](context.Background(), c, key)
			return err == nil && job.Status.CompletionTime != nil
		})
		if s := job.Status; s.Succeeded != completions || s.Failed != 0 || s.CompletedIndexes != fmt.Sprintf("0-%d", completions-1) ||
			s.Active != 0 || s.UncountedTerminatedPods != nil && len(s.UncountedTerminatedPods.Succeeded)+len(s.UncountedTerminatedPods.Failed) > 0 {
			t.Errorf("%s: %+v", app, s)
			for _, pod := range pods(c, app) {
				t.Logf("%s: %s, %s, %+v", pod.Name, pod.Status.Phase, pod.Status.Message, pod.Status.ContainerStatuses)
			}
		}
		p.countsPods(c, app, job.Status)
	}
}

// countsPods compares a job's status with its pods: one has succeeded for each index, and none has a
// finalizer left.
func (p *process) countsPods(c client.Interface, app string, s batchv1.JobStatus) {
	p.t.Helper()
	p.eventually("no pod has a finalizer", func() bool {
		for _, pod := range pods(c, app) {
			if len(pod.Finalizers) > 0 {
				return false
			}
		}
		return true
	})
	succeeded, failed := map[string]int{}, 0
	for _, pod := range pods(c, app) {
		switch pod.Status.Phase {
		case corev1.PodSucceeded:
			succeeded[pod.Annotations[batchv1.JobCompletionIndexAnnotation]]++
		case corev1.PodFailed:
			failed++
		default:
			p.t.Errorf("pod %s is %s", pod.Name, pod.Status.Phase)
		}
	}
	for index, n := range succeeded {
		if n != 1 {
			p.t.Errorf("%s: index %s succeeded %d times", app, index, n)
		}
	}
	if len(succeeded) != int(s.Succeeded) || failed != int(s.Failed) {
		p.t.Errorf("%s: %d indexes have a pod that succeeded, %d pods failed; the status says %d and %d", app, len(succeeded), failed, s.Succeeded, s.Failed)
	}
}

// Rolling updates of DaemonSets that a kill of the daemon interrupts end with one new pod on each node.
func TestKilledInADaemonSetUpdate(t *testing.T) {
	needRoot(t)
	p := newProcess(t)
	c := p.up()
	apps := []string{"agent", "logger", "watcher"}
	for _, app := range apps {
		p.make(c, &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: app},
			Spec: appsv1.DaemonSetSpec{Selector: selector(app), Template: template(app, forever)}})
	}
	settled := func(app, round string) bool {
		d, err := client.Get[*appsv1.DaemonSet](context.Background(), c, client.Key{Kind: api.DaemonSets, Namespace: "default", Name: app})
		if err != nil || d.Status.ObservedGeneration != d.Generation || d.Status.UpdatedNumberScheduled != 1 || d.Status.NumberAvailable != 1 {
			return false
		}
		list := pods(c, app)
		return len(list) == 1 && list[0].Annotations["round"] == round && list[0].DeletionTimestamp == nil
	}
	all := func(round string) func() bool {
		return func() bool {
			for _, app := range apps {
				if !settled(app, round) {
					return false
				}
			}
			return sleepers(p.dir) == len(apps)
		}
	}
	p.eventually("running", all(""))
	for round := range 3 {
		r := fmt.Sprint(round)
		patch := client.Patch{Type: types.MergePatchType, Data: []byte(`{"spec":{"template":{"metadata":{"annotations":{"round":"` + r + `"}}}}}`)}
		for _, app := range apps {
			if _, err := c.Patch(context.Background(), client.Key{Kind: api.DaemonSets, Namespace: "default", Name: app}, patch, client.WriteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		pause(time.Duration(20+round*70) * time.Millisecond)
		p.kill()
		c = p.up()
		p.eventually("updated after a crash", all(r))
	}
}

// A namespace whose deletion the daemon's death interrupts goes all the same, with all its containers, and
// its name is free again.
func TestKilledInANamespaceDeletion(t *testing.T) {
	needRoot(t)
	p := newProcess(t)
	c := p.up()
	key := client.Key{Kind: api.Namespaces, Name: "busy"}
	for round := range 3 {
		p.make(c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: key.Name}})
		p.busy(c, key.Name)
		p.eventually("all running", func() bool { return sleepers(p.dir) == busyShells })
		if _, err := c.Delete(context.Background(), key, nil); err != nil {
			t.Fatal(err)
		}
		pause(time.Duration(round*50) * time.Millisecond)
		p.kill()
		c = p.up()
		p.eventually("the namespace gone", func() bool {
			_, err := c.Get(context.Background(), key)
			return apierrors.IsNotFound(err)
		})
		for _, kind := range api.Kinds {
			if !kind.Namespaced {
				continue
			}
			list, err := c.List(context.Background(), kind, client.ListOptions{Namespace: key.Name})
			if err != nil || len(list.Items) > 0 {
				t.Errorf("%s are left: %v %v", kind, list, err)
			}
		}
		p.eventually("no container left", func() bool { return sleepers(p.dir) == 0 })
	}
}

const busyShells = 4

// busy fills a namespace with one workload of each kind, of so many shells together.
func (p *process) busy(c client.Interface, ns string) {
	p.t.Helper()
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: ns, Name: name} }
	once := template("job", forever)
	once.Spec.RestartPolicy = corev1.RestartPolicyNever
	p.make(c, &appsv1.Deployment{ObjectMeta: meta("deployment"),
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(2)), Selector: selector("deployment"), Template: template("deployment", forever)}})
	p.make(c, &appsv1.DaemonSet{ObjectMeta: meta("daemonset"),
		Spec: appsv1.DaemonSetSpec{Selector: selector("daemonset"), Template: template("daemonset", forever)}})
	p.make(c, &batchv1.Job{ObjectMeta: meta("job"), Spec: batchv1.JobSpec{Template: once}})
	for i := range 20 {
		p.make(c, &corev1.ConfigMap{ObjectMeta: meta(fmt.Sprint("cm-", i))})
	}
}
