package controllertest_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/faulty"
	ct "minik8s/internal/controller/controllertest"
	"minik8s/internal/controller/daemonset"
	"minik8s/internal/controller/deployment"
	"minik8s/internal/controller/job"
	"minik8s/internal/controller/pods"
	"minik8s/internal/controller/replicaset"
	"minik8s/internal/controller/sightings"
	"minik8s/internal/events"
	"minik8s/internal/informer"
	"minik8s/internal/scheduler"
)

// The tests of this file let the controllers of workloads work through clients that drop calls, lose
// answers, answer with conflicts, make writes twice and break watches, all at rates no network has. While
// that lasts an honest watch audits every state of the cluster, in the order of the store, and says what
// must never be true at any moment. Then the faults end, and all must settle.

var rates = faulty.Rates{Drop: 0.05, Lose: 0.05, Conflict: 0.05, Repeat: 0.05, Break: 0.02, Delay: 0.3, MaxDelay: 3 * time.Millisecond}

type part interface {
	Run(ctx context.Context, ready func()) error
}

// world is a cluster whose controllers have bad connections.
type world struct {
	*ct.Cluster
	t     *testing.T
	seed  int64
	bad   []*faulty.Client
	kills map[string]func()
	views *informer.Views
}

// makers make the parts of a master that the tests are about.
var makers = map[string]func(client.Interface, *informer.Views, *events.Recorder, *slog.Logger) part{
	"replicaset-controller": func(c client.Interface, v *informer.Views, r *events.Recorder, log *slog.Logger) part {
		return replicaset.New(c, v, r, sightings.New(), log)
	},
	"deployment-controller": func(c client.Interface, v *informer.Views, r *events.Recorder, log *slog.Logger) part {
		return deployment.New(c, v, r, log)
	},
	"daemonset-controller": func(c client.Interface, v *informer.Views, r *events.Recorder, log *slog.Logger) part {
		return daemonset.New(c, v, r, sightings.New(), log)
	},
	"job-controller": func(c client.Interface, v *informer.Views, r *events.Recorder, log *slog.Logger) part {
		return job.New(c, v, r, sightings.New(), log)
	},
	"scheduler": func(c client.Interface, v *informer.Views, r *events.Recorder, log *slog.Logger) part {
		return scheduler.New(c, v, r, scheduler.Config{}, log)
	},
}

// controllers are all of them but the scheduler.
var controllers = []string{"replicaset-controller", "deployment-controller", "daemonset-controller", "job-controller"}

func newWorld(t *testing.T, seed int64, parts ...string) *world {
	w := &world{Cluster: ct.New(t), t: t, seed: seed, kills: map[string]func(){}}
	if seed%2 == 0 { // in every other run all share their views
		c := faulty.New(w.As("views"), rates, seed)
		w.bad, w.views = append(w.bad, c), informer.NewViews(c, slog.New(slog.DiscardHandler))
	}
	for _, name := range parts {
		w.begin(name)
	}
	return w
}

// begin starts a part anew.
func (w *world) begin(name string) {
	c := faulty.New(w.As(name), rates, w.seed)
	w.bad = append(w.bad, c)
	w.kills[name] = w.Start(makers[name](c, w.views, events.New(w.As(name), "test", "", nil), slog.New(slog.DiscardHandler)).Run)
}

func (w *world) heal() {
	for _, c := range w.bad {
		c.Heal()
	}
}

// audit calls check with the pods of every moment, by name, until the test ends.
func (w *world) audit(check func(now map[string]*corev1.Pod) error) {
	now := map[string]*corev1.Pod{}
	w.Start(func(ctx context.Context, ready func()) error {
		watch, err := w.Admin().Watch(ctx, api.Pods, client.WatchOptions{})
		if err != nil {
			return err
		}
		defer watch.Stop()
		ready()
		for e := range watch.Events() {
			p := e.Object.(*corev1.Pod)
			if now[p.Name] = p; e.Type == client.Deleted {
				delete(now, p.Name)
			}
			if err := check(now); err != nil {
				w.t.Errorf("revision %s: %v", e.ResourceVersion, err)
				return nil
			}
		}
		return nil
	})
}

func active(now map[string]*corev1.Pod) (n, ready int) {
	for _, p := range now {
		if pods.Active(p) {
			n++
			if pods.Ready(p) {
				ready++
			}
		}
	}
	return n, ready
}

// forSeeds runs a test with several random seeds, in parallel.
func forSeeds(t *testing.T, parts []string, test func(t *testing.T, w *world, rng *rand.Rand)) {
	n := int64(6)
	if testing.Short() {
		n = 2
	}
	for seed := range n {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			test(t, newWorld(t, seed, parts...), rand.New(rand.NewPCG(uint64(seed), 0)))
		})
	}
}

func nodes(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprint("n", i))
	}
	return out
}

// TestSetsNeverHaveTooMany deletes pods at random, of a ReplicaSet and of a ReplicationController of the same name;
// there is never one more than is wanted.
func TestSetsNeverHaveTooMany(t *testing.T) {
	forSeeds(t, controllers, func(t *testing.T, w *world, rng *rand.Rand) {
		const replicas, older = 12, 8
		w.audit(func(now map[string]*corev1.Pod) error {
			of := map[string]int{}
			for _, p := range now {
				if pods.Active(p) {
					of[metav1.GetControllerOf(p).Kind]++
				}
			}
			if of["ReplicaSet"] > replicas || of["ReplicationController"] > older {
				return fmt.Errorf("%v pods, %d and %d are wanted", of, replicas, older)
			}
			return nil
		})
		w.Hollow(nil, nodes(20)...)
		ct.Create(w.Cluster, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(replicas)), Selector: ct.Selector("web"), Template: ct.Template("web", "x:1")}})
		ct.Create(w.Cluster, &corev1.ReplicationController{ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec: corev1.ReplicationControllerSpec{Replicas: new(int32(older)), Template: new(ct.Template("old", "x:1"))}})
		for range 10 {
			list := ct.Until(w.Cluster, "some pods", api.Pods, func(list []*corev1.Pod) bool { return len(list) > (replicas+older)/2 })
			for range 3 { // one that is deleted already does not matter
				w.Admin().Delete(w.Context(), client.KeyOf(list[rng.IntN(len(list))]), nil) //nolint:errcheck // as said
			}
		}
		w.heal()
		ct.Until(w.Cluster, "all ready", api.ReplicaSets, func(list []*appsv1.ReplicaSet) bool {
			return list[0].Status.ReadyReplicas == replicas && list[0].Status.ObservedGeneration == list[0].Generation
		})
		ct.Until(w.Cluster, "all ready", api.ReplicationControllers, func(list []*corev1.ReplicationController) bool {
			return list[0].Status.ReadyReplicas == older && list[0].Status.ObservedGeneration == list[0].Generation
		})
		ct.Until(w.Cluster, "as many as are wanted", api.Pods, func(list []*corev1.Pod) bool { return len(list) == replicas+older })
	})
}

// bounds are what a deployment promises while it rolls out.
type bounds struct {
	replicas, surge, unavailable int32
	// full: as many were ready as are wanted. From then on the lower bound holds, if no template changes before the
	// deployment's status says so: pods that the controller has not seen ready yet may be given up for newer ones,
	// and become ready before they go.
	full bool
}

func (b *bounds) check(now map[string]*corev1.Pod, app string) error {
	var all, ready int32
	for _, p := range now {
		if p.Labels["app"] == app && pods.Active(p) {
			all++
			if pods.Ready(p) {
				ready++
			}
		}
	}
	b.full = b.full || ready >= b.replicas
	if all > b.replicas+b.surge || b.full && ready < b.replicas-b.unavailable {
		return fmt.Errorf("%s has %d pods, of which %d are ready: %d are wanted, %d may be too many, %d missing",
			app, all, ready, b.replicas, b.surge, b.unavailable)
	}
	return nil
}

func (b *bounds) deployment(app string, template corev1.PodTemplateSpec) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: app}, Spec: appsv1.DeploymentSpec{
		Replicas: &b.replicas, Selector: ct.Selector(app), Template: template,
		Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
			MaxSurge: new(intstr.FromInt32(b.surge)), MaxUnavailable: new(intstr.FromInt32(b.unavailable))}}}}
}

// done reports whether a deployment is rolled out.
func (b *bounds) done(d *appsv1.Deployment) bool {
	s := d.Status
	return s.ObservedGeneration == d.Generation && s.UpdatedReplicas == b.replicas && s.AvailableReplicas == b.replicas && s.Replicas == b.replicas
}

// TestRolloutKeepsItsBounds changes the template again and again, in every other run also in the middle
// of a rollout.
func TestRolloutKeepsItsBounds(t *testing.T) {
	forSeeds(t, controllers, func(t *testing.T, w *world, rng *rand.Rand) {
		w.Hollow(nil, nodes(20)...)
		b := bounds{replicas: 10, surge: 3, unavailable: 2}
		w.audit(func(now map[string]*corev1.Pod) error { return b.check(now, "web") })
		ct.Create(w.Cluster, b.deployment("web", ct.Template("web", "x:0")))
		until := func(what string, cond func(d *appsv1.Deployment) bool) {
			ct.Until(w.Cluster, what, api.Deployments, func(list []*appsv1.Deployment) bool { return cond(list[0]) })
		}
		until("rolled out first", b.done)
		for i := range 6 {
			ct.Change(w.Cluster, api.Deployments, "web", func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.Containers[0].Image = fmt.Sprint("x:", (i+1)%4)
			})
			some := rng.Int32N(b.replicas + 1)
			until(fmt.Sprintf("%d are new", some), func(d *appsv1.Deployment) bool {
				return d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas >= some
			})
			if w.seed%2 == 0 {
				until("rolled out", b.done)
			}
		}
		w.heal()
		until("rolled out at last", b.done)
		image := fmt.Sprint("x:", 6%4)
		ct.Until(w.Cluster, "only new pods", api.Pods, func(list []*corev1.Pod) bool {
			return len(list) == int(b.replicas) && !slices.ContainsFunc(list, func(p *corev1.Pod) bool { return p.Spec.Containers[0].Image != image })
		})
	})
}

// TestJobCountsRight has pods that fail at random; each index is done exactly once.
func TestJobCountsRight(t *testing.T) {
	forSeeds(t, controllers, func(t *testing.T, w *world, rng *rand.Rand) {
		const completions, parallelism = 15, 4
		unlucky := strings.HasSuffix(t.Name(), "0") // in one run only: an index that failed waits for ten seconds
		w.audit(func(now map[string]*corev1.Pod) error {
			if n, _ := active(now); n > parallelism {
				return fmt.Errorf("%d pods run, %d may", n, parallelism)
			}
			done := map[string]string{}
			for _, p := range now {
				ix := p.Annotations[batchv1.JobCompletionIndexAnnotation]
				if p.Status.Phase != corev1.PodSucceeded {
					continue
				}
				if other := done[ix]; other != "" {
					return fmt.Errorf("index %s was done by %s and by %s", ix, other, p.Name)
				}
				done[ix] = p.Name
			}
			return nil
		})
		w.Hollow(func(p *corev1.Pod) corev1.PodPhase {
			h := fnv.New32()
			h.Write([]byte(p.Name)) //nolint:errcheck // never fails
			if unlucky && h.Sum32()%6 == 0 && p.Annotations[batchv1.JobIndexFailureCountAnnotation] == "0" {
				return corev1.PodFailed
			}
			return corev1.PodSucceeded
		}, nodes(20)...)
		ct.Create(w.Cluster, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "sum"}, Spec: batchv1.JobSpec{
			Completions: new(int32(completions)), Parallelism: new(int32(parallelism)), BackoffLimitPerIndex: new(int32(5)),
			CompletionMode: new(batchv1.IndexedCompletion), Template: jobTemplate()}})
		ct.Until(w.Cluster, "a third of it is done", api.Jobs, func(list []*batchv1.Job) bool { return list[0].Status.Succeeded > completions/3 })
		w.heal()
		j := ct.Until(w.Cluster, "complete", api.Jobs, func(list []*batchv1.Job) bool {
			return slices.ContainsFunc(list[0].Status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == batchv1.JobComplete })
		})[0]
		if j.Status.Succeeded != completions || j.Status.CompletedIndexes != fmt.Sprintf("0-%d", completions-1) {
			t.Errorf("%+v", j.Status)
		}
		list := ct.Until(w.Cluster, "no pod is tracked", api.Pods, func(list []*corev1.Pod) bool {
			return !slices.ContainsFunc(list, func(p *corev1.Pod) bool { return len(p.Finalizers) > 0 })
		})
		failed := 0
		for _, p := range list {
			if p.Status.Phase == corev1.PodFailed {
				failed++
			}
		}
		if int(j.Status.Failed) != failed {
			t.Errorf("%d are counted as failed, %d did", j.Status.Failed, failed)
		}
	})
}

func jobTemplate() corev1.PodTemplateSpec {
	tpl := ct.Template("sum", "x:1")
	tpl.Labels = nil
	tpl.Spec.RestartPolicy = corev1.RestartPolicyNever
	return tpl
}

// TestDaemonSetKeepsItsBounds changes the template of a set on many nodes.
func TestDaemonSetKeepsItsBounds(t *testing.T) {
	forSeeds(t, controllers, func(t *testing.T, w *world, rng *rand.Rand) {
		const size, unavailable = 20, 4
		w.Hollow(nil, nodes(size)...)
		full := false
		w.audit(func(now map[string]*corev1.Pod) error {
			n, ready := active(now)
			full = full || ready == size
			if n > size {
				return fmt.Errorf("%d pods on %d nodes", n, size)
			}
			if full && ready < size-unavailable {
				return fmt.Errorf("%d pods are available, %d of %d may be missing", ready, unavailable, size)
			}
			return nil
		})
		ct.Create(w.Cluster, &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "agent"}, Spec: appsv1.DaemonSetSpec{
			Selector: ct.Selector("agent"), Template: ct.Template("agent", "x:0"),
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: new(intstr.FromInt32(unavailable))}}}})
		updated := func(list []*appsv1.DaemonSet, n int32) bool {
			s := list[0].Status
			return s.ObservedGeneration == list[0].Generation && s.UpdatedNumberScheduled >= n
		}
		ct.Until(w.Cluster, "everywhere", api.DaemonSets, func(list []*appsv1.DaemonSet) bool { return list[0].Status.NumberReady == size })
		for i := range 3 {
			ct.Change(w.Cluster, api.DaemonSets, "agent", func(d *appsv1.DaemonSet) {
				d.Spec.Template.Spec.Containers[0].Image = fmt.Sprint("x:", i+1)
			})
			some := int32(rng.IntN(size + 1))
			ct.Until(w.Cluster, fmt.Sprintf("%d are new", some), api.DaemonSets, func(list []*appsv1.DaemonSet) bool { return updated(list, some) })
		}
		w.heal()
		ct.Until(w.Cluster, "rolled out", api.DaemonSets, func(list []*appsv1.DaemonSet) bool {
			return updated(list, size) && list[0].Status.NumberAvailable == size
		})
	})
}
