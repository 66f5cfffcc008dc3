package daemonset

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"minik8s/internal/api"
	"minik8s/internal/api/defaults"
	ct "minik8s/internal/controller/controllertest"
	"minik8s/internal/controller/pods"
	"minik8s/internal/controller/sightings"
	"minik8s/internal/events"
)

func newSet(surge, unavailable int32) *appsv1.DaemonSet {
	s, u := intstr.FromInt32(surge), intstr.FromInt32(unavailable)
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "agent", Namespace: "default", UID: "d"},
		Spec: appsv1.DaemonSetSpec{Selector: ct.Selector("agent"), Template: ct.Template("agent", "x:1"),
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxSurge: &s, MaxUnavailable: &u}}}}
	defaults.DaemonSet(ds)
	return ds
}

func TestEligible(t *testing.T) {
	taint := func(key string, effect corev1.TaintEffect) []corev1.Taint {
		return []corev1.Taint{{Key: key, Effect: effect}}
	}
	for name, test := range map[string]struct {
		node      corev1.Node
		change    func(*corev1.PodSpec)
		run, stay bool
	}{
		"plain":          {run: true, stay: true},
		"no schedule":    {node: corev1.Node{Spec: corev1.NodeSpec{Taints: taint("a", corev1.TaintEffectNoSchedule)}}, stay: true},
		"no execute":     {node: corev1.Node{Spec: corev1.NodeSpec{Taints: taint("a", corev1.TaintEffectNoExecute)}}},
		"cordoned":       {node: corev1.Node{Spec: corev1.NodeSpec{Taints: taint(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule)}}, run: true, stay: true},
		"not ready":      {node: corev1.Node{Spec: corev1.NodeSpec{Taints: taint(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute)}}, run: true, stay: true},
		"selector":       {change: func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"disk": "ssd"} }},
		"other node":     {change: func(s *corev1.PodSpec) { s.NodeName = "other" }},
		"affinity":       {change: func(s *corev1.PodSpec) { s.Affinity = bindTo(nil, "other") }},
		"affinity, this": {change: func(s *corev1.PodSpec) { s.Affinity = bindTo(nil, "n") }, run: true, stay: true},
	} {
		ds := newSet(0, 1)
		if test.change != nil {
			test.change(&ds.Spec.Template.Spec)
		}
		test.node.Name = "n"
		if run, stay := eligible(ds, &test.node); run != test.run || stay != test.stay {
			t.Errorf("%s: got %v and %v", name, run, stay)
		}
	}
}

// TestUpdatesWithinItsLimits: whatever the order of events, no more available pods are taken than may
// be missing, no more are added than may be too many, and in the end every node has the new one.
func TestUpdatesWithinItsLimits(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 4))
		surge, unavailable := int32(0), int32(r.IntN(3)+1)
		if seed%2 == 0 {
			surge, unavailable = unavailable, 0
		}
		ds, n := newSet(surge, unavailable), r.IntN(6)+1
		var nodes []*corev1.Node
		for i := range n {
			nodes = append(nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i)}})
		}
		now, made := time.Unix(1e6, 0), 0
		var list []*corev1.Pod
		hash := "1"
		ready := func() (c int) {
			for _, p := range list {
				if pods.Ready(p) {
					c++
				}
			}
			return c
		}
		act := func() {
			now = now.Add(time.Second)
			p := decide(&view{ds: ds, nodes: nodes, pods: group(list), hash: hash, now: now})
			before := ready()
			for _, gone := range p.remove {
				for i, q := range list {
					if q == gone {
						list = append(list[:i:i], list[i+1:]...)
						break
					}
				}
			}
			if after := ready(); after < before && after < n-int(unavailable) {
				t.Fatalf("seed %d: %d of %d are ready, %d may be missing", seed, after, n, unavailable)
			}
			for _, name := range p.create {
				made++
				pod := podFor(ds, name, hash)
				pod.Name, pod.CreationTimestamp, pod.Spec.NodeName = fmt.Sprint("p", made), metav1.NewTime(now), name
				list = append(list, pod)
			}
			if len(list) > n+int(surge) {
				t.Fatalf("seed %d: %d pods on %d nodes with surge %d", seed, len(list), n, surge)
			}
		}
		wake := func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodRunning
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
		act()
		for _, p := range list {
			wake(p)
		}
		hash = "2"
		for range 100 {
			act()
			if len(list) > 0 {
				wake(list[r.IntN(len(list))])
			}
		}
		for range 3 * n {
			for _, p := range list {
				wake(p)
			}
			act()
		}
		for _, p := range list {
			if p.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] != "2" {
				t.Errorf("seed %d: an old pod is left", seed)
			}
		}
		if len(list) != n {
			t.Errorf("seed %d: %d pods on %d nodes", seed, len(list), n)
		}
	}
}

// During a surge the older pod of a node counts, and the set is queued again for when the newer one will be
// available.
func TestStatusOfASurge(t *testing.T) {
	now := time.Unix(1e6, 0)
	ds := newSet(1, 0)
	ds.Spec.MinReadySeconds = 30
	on := func(hash string, age time.Duration) *corev1.Pod {
		p := podFor(ds, "n", hash)
		p.Name, p.Spec.NodeName, p.CreationTimestamp = "p"+hash, "n", metav1.NewTime(now.Add(-age))
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-age))}}
		return p
	}
	v := &view{ds: ds, nodes: []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n"}}}, hash: "2", now: now}
	v.pods = group([]*corev1.Pod{on("2", 10*time.Second), on("1", time.Hour)})
	s, again := v.status()
	if s.NumberReady != 1 || s.NumberAvailable != 1 || s.UpdatedNumberScheduled != 0 || again != 20*time.Second {
		t.Errorf("%+v, again in %s", s, again)
	}
	v.pods = group([]*corev1.Pod{on("2", 10*time.Second)})
	if s, again = v.status(); s.NumberReady != 1 || s.NumberAvailable != 0 || s.UpdatedNumberScheduled != 1 || again != 20*time.Second {
		t.Errorf("%+v, again in %s", s, again)
	}
}

// A pod that was adopted and waits for no node in particular stays.
func TestLeavesStrangersAlone(t *testing.T) {
	ds := newSet(0, 1)
	bare := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "bare"}}
	lost := podFor(ds, "gone", "1")
	p := decide(&view{ds: ds, pods: group([]*corev1.Pod{bare, lost}), hash: "1", now: time.Unix(1e6, 0)})
	if len(p.remove) != 1 || p.remove[0] != lost {
		t.Errorf("removes %v", p.remove)
	}
}

func TestRunsInACluster(t *testing.T) {
	c := ct.New(t)
	c.Hollow(nil, "n1", "n2", "n3")
	c.Start(New(c.As("daemonset-controller"), c.Views(), events.New(c.As("daemonset-controller"), "t", "", nil), sightings.New(), slog.New(slog.DiscardHandler)).Run)
	ds := newSet(0, 1)
	ds.UID = ""
	ct.Create(c, ds)
	all := func(n int32) func([]*appsv1.DaemonSet) bool {
		return func(list []*appsv1.DaemonSet) bool {
			d := list[0]
			return d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedNumberScheduled == n && d.Status.NumberAvailable == n
		}
	}
	ct.Until(c, "on every node", api.DaemonSets, all(3))
	ct.Create(c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n4"}})
	ct.Until(c, "on the new node", api.DaemonSets, all(4))
	ct.Change(c, api.DaemonSets, "agent", func(d *appsv1.DaemonSet) { d.Spec.Template.Spec.Containers[0].Image = "x:2" })
	ct.Until(c, "updated", api.DaemonSets, all(4))
	ct.Until(c, "two revisions", api.ControllerRevisions, func(list []*appsv1.ControllerRevision) bool { return len(list) == 2 })
	ct.Until(c, "four new pods", api.Pods, func(list []*corev1.Pod) bool {
		for _, p := range list {
			if p.Spec.Containers[0].Image != "x:2" {
				return false
			}
		}
		return len(list) == 4
	})
}
