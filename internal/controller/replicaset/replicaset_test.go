package replicaset

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	ct "minik8s/internal/controller/controllertest"
	"minik8s/internal/controller/pods"
	"minik8s/internal/controller/sightings"
	"minik8s/internal/events"
)

func somePods(n int) []*corev1.Pod {
	var out []*corev1.Pod
	for i := range n {
		out = append(out, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%d", i), Namespace: "default"}})
	}
	return out
}

func TestDecide(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, test := range []struct{ want, have, create, remove int }{
		{3, 0, 3, 0}, {3, 3, 0, 0}, {1, 3, 0, 2}, {0, 2, 0, 2}, {1000, 0, burst, 0},
	} {
		rs := &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(test.want))}}
		list := somePods(test.have)
		p := decide(replicaSets.read(rs), list, nil, list, time.Time{}, now)
		if p.create != test.create || len(p.remove) != test.remove {
			t.Errorf("%+v: got %d and %d", test, p.create, len(p.remove))
		}
		rs.DeletionTimestamp = &metav1.Time{Time: now}
		if p := decide(replicaSets.read(rs), list, nil, list, time.Time{}, now); p.create != 0 || len(p.remove) != 0 {
			t.Errorf("%+v: a set that is going did something: %+v", test, p)
		}
	}
}

// Pods that fail at once are replaced after a back-off that grows.
func TestBacksOffFromFailures(t *testing.T) {
	now := time.Unix(100000, 0)
	for _, test := range []struct {
		failed, wanted int
		age, want      time.Duration
	}{
		{0, 2, 0, 0}, {1, 2, 0, 0}, {2, 2, 0, 0}, {3, 2, 0, 0}, // all there were have failed, once
		{4, 2, 0, time.Second}, {6, 2, 0, 2 * time.Second}, {6, 2, time.Second, time.Second}, {6, 2, time.Minute, 0},
		{10, 1, 0, 4*time.Minute + 16*time.Second}, {1000, 1, 0, maxBackoff}, {1000, 1, time.Hour, 0}, {5, 0, 0, 8 * time.Second},
	} {
		list := somePods(test.failed)
		for i, p := range list {
			p.CreationTimestamp = metav1.NewTime(now.Add(-test.age - time.Duration(i)*time.Second))
		}
		if got := backoff(list, test.wanted, time.Time{}, now); got != test.want {
			t.Errorf("%+v: got %s", test, got)
		}
	}
	list := somePods(4)
	for _, p := range list {
		p.CreationTimestamp = metav1.NewTime(now)
	}
	rs := &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(2))}}
	if p := decide(replicaSets.read(rs), nil, list, nil, time.Time{}, now); p.create != 0 || p.lookAgain != time.Second {
		t.Errorf("%+v", p)
	}
	if p := decide(replicaSets.read(rs), nil, list, nil, now.Add(time.Second), now); p.create != 2 {
		t.Errorf("after a change: %+v", p)
	}
}

func TestStatus(t *testing.T) {
	now := time.Unix(1000, 0)
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Generation: 4}, Spec: appsv1.ReplicaSetSpec{MinReadySeconds: 10}}
	list := somePods(3)
	for i, since := range []int64{980, 995} {
		list[i].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Unix(since, 0)}}
	}
	s, again := status(replicaSets.read(rs), list, 2, plan{create: 1}, fmt.Errorf("no room"), nil, now)
	if s.Replicas != 3 || s.ReadyReplicas != 2 || s.AvailableReplicas != 1 || *s.TerminatingReplicas != 2 || s.ObservedGeneration != 4 ||
		again != 5*time.Second || len(s.Conditions) != 1 || s.Conditions[0].Reason != "FailedCreate" {
		t.Errorf("%+v, again in %s", s, again)
	}
	rs.Status = s
	if s, _ = status(replicaSets.read(rs), list, 0, plan{}, nil, nil, now); len(s.Conditions) != 0 {
		t.Errorf("the failure stayed: %+v", s.Conditions)
	}
}

func TestOrderOfDeletion(t *testing.T) {
	now := time.Unix(100000, 0)
	make := func(name, node string, phase corev1.PodPhase, readyFor, restarts int) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Unix(50000, 0)},
			Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase,
				ContainerStatuses: []corev1.ContainerStatus{{RestartCount: int32(restarts)}}}}
		if readyFor > 0 {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue,
				LastTransitionTime: metav1.NewTime(now.Add(-time.Duration(readyFor) * time.Second))}}
		}
		return p
	}
	want := []*corev1.Pod{
		make("unbound", "", corev1.PodPending, 0, 0),
		make("pending", "a", corev1.PodPending, 0, 0),
		make("not-ready", "a", corev1.PodRunning, 0, 0),
		make("doubled", "b", corev1.PodRunning, 9000, 0),
		make("young", "c", corev1.PodRunning, 10, 0),
		make("restarted", "d", corev1.PodRunning, 8000, 3),
		make("old", "e", corev1.PodRunning, 8000, 0),
	}
	related := append(somePods(0), want...)
	related = append(related, make("other", "b", corev1.PodRunning, 10, 0), make("other2", "b", corev1.PodRunning, 10, 0),
		make("other3", "b", corev1.PodRunning, 10, 0))
	shuffled := append(somePods(0), want...)
	rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	for i, p := range pods.ForDeletion(shuffled, related, now) {
		if p != want[i] {
			t.Errorf("place %d: got %s, want %s", i, p.Name, want[i].Name)
		}
	}
}

func start(t *testing.T) (*ct.Cluster, *Controller) {
	c := ct.New(t)
	c.Hollow(nil, "n1", "n2")
	r := New(c.As("replicaset-controller"), c.Views(), events.New(c.As("replicaset-controller"), "test", "", nil), sightings.New(), slog.New(slog.DiscardHandler))
	c.Start(r.Run)
	return c, r
}

// kindOfSet is a form with what tests need to make its objects.
type kindOfSet struct {
	form
	make  func(name string, replicas int32) api.Object
	scale func(obj api.Object, replicas int32)
}

// forBoth runs a test with each kind of sets.
func forBoth(t *testing.T, test func(t *testing.T, k kindOfSet)) {
	for _, k := range []kindOfSet{
		{replicaSets, func(name string, replicas int32) api.Object {
			return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec: appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: ct.Selector(name), Template: ct.Template(name, "x:1")}}
		}, func(obj api.Object, n int32) { obj.(*appsv1.ReplicaSet).Spec.Replicas = &n }},
		{replicationControllers, func(name string, replicas int32) api.Object {
			return &corev1.ReplicationController{ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec: corev1.ReplicationControllerSpec{Replicas: &replicas, Template: new(ct.Template(name, "x:1"))}}
		}, func(obj api.Object, n int32) { obj.(*corev1.ReplicationController).Spec.Replicas = &n }},
	} {
		t.Run(k.kind.Kind, func(t *testing.T) { test(t, k) })
	}
}

func (k kindOfSet) untilReady(c *ct.Cluster, n int32) {
	ct.Until(c, fmt.Sprintf("%d ready", n), k.kind, func(list []api.Object) bool {
		s := k.read(list[0])
		all := s.status.Replicas == n && s.status.ReadyReplicas == n && s.status.AvailableReplicas == n && s.status.FullyLabeledReplicas == n
		return all && s.status.ObservedGeneration == list[0].GetGeneration()
	})
}

func TestKeepsTheNumber(t *testing.T) {
	forBoth(t, func(t *testing.T, k kindOfSet) {
		c, _ := start(t)
		ct.Create(c, k.make("web", 20))
		k.untilReady(c, 20)
		for _, n := range []int32{5, 30, 0, 3} {
			ct.Change(c, k.kind, "web", func(obj api.Object) { k.scale(obj, n) })
			k.untilReady(c, n)
		}
		list := ct.Until(c, "3 pods", api.Pods, func(list []*corev1.Pod) bool { return len(list) == 3 })
		if _, err := c.Admin().Delete(c.Context(), client.KeyOf(list[0]), nil); err != nil {
			t.Fatal(err)
		}
		ct.Until(c, "a pod in place of the deleted one", api.Pods, func(now []*corev1.Pod) bool {
			n := 0
			for _, p := range now {
				if p.UID != list[0].UID && pods.Ready(p) {
					n++
				}
			}
			return n == 3
		})
	})
}

func TestAdoptsAndReleases(t *testing.T) {
	forBoth(t, func(t *testing.T, k kindOfSet) {
		c, r := start(t)
		bare := ct.Create(c, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "bare", Labels: map[string]string{"app": "web"}},
			Spec: ct.Template("web", "x:1").Spec})
		for deadline := time.Now().Add(20 * time.Second); ; runtime.Gosched() {
			if _, ok := r.pods.Get("default", "bare"); ok { // else it may make two of its own first, and then choose among three
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("the controller does not see the pod")
			}
		}
		set := ct.Create(c, k.make("web", 2))
		k.untilReady(c, 2)
		list := ct.Until(c, "the bare pod adopted", api.Pods, func(list []*corev1.Pod) bool {
			return len(list) == 2 && metav1.IsControlledBy(list[0], set) && metav1.IsControlledBy(list[1], set)
		})
		if list[0].UID != bare.UID && list[1].UID != bare.UID {
			t.Fatal("the bare pod is gone")
		}
		for _, p := range list {
			if ref := p.OwnerReferences[0]; ref.Kind != k.kind.Kind || ref.APIVersion != k.kind.APIVersion() || ref.Name != "web" {
				t.Errorf("%s names %+v", p.Name, ref)
			}
		}
		ct.Change(c, api.Pods, "bare", func(p *corev1.Pod) { p.Labels = map[string]string{"app": "other"} })
		ct.Until(c, "the pod released and replaced", api.Pods, func(list []*corev1.Pod) bool {
			free := 0
			for _, p := range list {
				if p.Name == "bare" && metav1.GetControllerOf(p) == nil {
					free++
				}
			}
			return len(list) == 3 && free == 1
		})
	})
}

// Sets of both kinds with the same name have each their own pods, even if both have the same selector.
func TestSameName(t *testing.T) {
	c, _ := start(t)
	forBoth(t, func(_ *testing.T, k kindOfSet) {
		ct.Create(c, k.make("web", 3))
		k.untilReady(c, 3)
	})
	list := ct.Until(c, "six", api.Pods, func(list []*corev1.Pod) bool { return len(list) == 6 })
	of := map[string]int{}
	for _, p := range list {
		of[metav1.GetControllerOf(p).Kind]++
	}
	if of["ReplicaSet"] != 3 || of["ReplicationController"] != 3 {
		t.Errorf("of six pods they have %v", of)
	}
}

// A kind's status is read back as it was written, and the same status is not written again.
func TestReportsWhatItReads(t *testing.T) {
	forBoth(t, func(t *testing.T, k kindOfSet) {
		obj := k.make("web", 3)
		obj.SetGeneration(4)
		if s := k.read(obj); wanted(s) != 3 || s.spec.Template.Spec.Containers[0].Image != "x:1" {
			t.Errorf("%+v", s.spec)
		}
		now := time.Unix(1000, 0)
		st, _ := status(k.read(obj), somePods(2), 1, plan{create: 1}, fmt.Errorf("no room"), nil, now)
		upd := k.report(obj, st)
		if upd == nil || upd == obj {
			t.Fatal("nothing is written")
		}
		got := k.read(upd).status
		if c := got.Conditions; got.Replicas != 2 || got.ObservedGeneration != 4 || len(c) != 1 || c[0].Type != appsv1.ReplicaSetReplicaFailure ||
			c[0].Status != corev1.ConditionTrue || c[0].Reason != "FailedCreate" || c[0].Message != "no room" || !c[0].LastTransitionTime.Time.Equal(now) {
			t.Errorf("%+v", got)
		}
		if st, _ = status(k.read(upd), somePods(2), 1, plan{create: 1}, fmt.Errorf("no room at all"), nil, now.Add(time.Minute)); k.report(upd, st) != nil {
			t.Error("the same is written again")
		}
		if st, _ = status(k.read(upd), somePods(2), 1, plan{}, nil, nil, now); len(k.read(k.report(upd, st)).status.Conditions) != 0 {
			t.Error("the failure stays")
		}
	})
}

// A pod counts minReadySeconds after the controller saw it become ready, also where the clock of its node is an hour ahead.
func TestAPodOfANodeWithAnotherClock(t *testing.T) {
	c, _ := start(t)
	one := int32(1)
	ct.Create(c, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.ReplicaSetSpec{Replicas: &one, MinReadySeconds: 1, Selector: ct.Selector("web"), Template: ct.Template("web", "x:1")}})
	available := func(n int32) {
		ct.Until(c, fmt.Sprintf("%d available", n), api.ReplicaSets, func(list []*appsv1.ReplicaSet) bool {
			return list[0].Status.ReadyReplicas == n && list[0].Status.AvailableReplicas == n
		})
	}
	available(1)
	name := ct.Until(c, "a pod", api.Pods, func(list []*corev1.Pod) bool { return len(list) == 1 })[0].Name
	say := func(is corev1.ConditionStatus, since time.Time) {
		ct.ChangeStatus(c, api.Pods, name, func(p *corev1.Pod) {
			cond := pods.Condition(p, corev1.PodReady)
			cond.Status, cond.LastTransitionTime = is, metav1.NewTime(since)
		})
	}
	say(corev1.ConditionFalse, time.Now())
	available(0)
	say(corev1.ConditionTrue, time.Now().Add(time.Hour))
	available(1)
}
