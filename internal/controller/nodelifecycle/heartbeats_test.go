package nodelifecycle

import (
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/controller/controllertest"
	"minik8s/internal/controller/loop"
	"minik8s/internal/events"
	"minik8s/internal/informer"
)

// A node is as alive as its signs are fresh by our clock, whatever its own clock shows.
func TestSightings(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	lease := func(at time.Time) *coordinationv1.Lease {
		renewed := metav1.NewMicroTime(at)
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}}
	}
	node := func(beat time.Time) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, LastHeartbeatTime: metav1.NewTime(beat)}}}}
	}
	unknown := node(noon)
	unknown.Status.Conditions[0].Status = corev1.ConditionUnknown
	for _, clock := range []struct {
		name string
		off  time.Duration
	}{{"right", 0}, {"an hour ahead", time.Hour}, {"an hour behind", -time.Hour}} {
		theirs := noon.Add(clock.off)
		for _, x := range []struct {
			name  string
			event func(*heartbeats)
			want  time.Duration // after noon
		}{
			{"nothing", func(*heartbeats) {}, 0},
			{"a first lease", func(s *heartbeats) { s.lease(nil, lease(theirs)) }, time.Minute},
			{"a lease renewed", func(s *heartbeats) { s.lease(lease(theirs), lease(theirs.Add(10*time.Second))) }, time.Minute},
			{"a lease renewed by a clock set back", func(s *heartbeats) { s.lease(lease(theirs), lease(theirs.Add(-time.Hour))) }, time.Minute},
			{"a lease changed, not renewed", func(s *heartbeats) { s.lease(lease(theirs), lease(theirs)) }, 0},
			{"a lease deleted", func(s *heartbeats) { s.lease(lease(theirs), nil) }, 0},
			{"a new node", func(s *heartbeats) { s.node(nil, node(theirs)) }, time.Minute},
			{"a heartbeat", func(s *heartbeats) { s.node(node(theirs), node(theirs.Add(time.Second))) }, time.Minute},
			{"a node changed by others", func(s *heartbeats) { s.node(node(noon), unknown) }, 0},
			{"a restart", func(s *heartbeats) { s.begin() }, time.Minute},
		} {
			now := noon
			s := &heartbeats{now: func() time.Time { return now }}
			s.begin()
			now = noon.Add(time.Minute)
			x.event(s)
			if got := s.of("n").Sub(noon); got != x.want {
				t.Errorf("a clock that is %s: %s: seen %s after noon", clock.name, x.name, got)
			}
		}
	}
}

// The controller with nodes whose clocks are wrong: they fall silent, and come back.
func TestWrongClocks(t *testing.T) {
	for _, off := range []time.Duration{-time.Hour, time.Hour} {
		t.Run(off.String(), func(t *testing.T) {
			c := controllertest.New(t)
			controllertest.Create(c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: corev1.NamespaceNodeLease}})
			clock := &testClock{at: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)}
			theirs := func() metav1.MicroTime { return metav1.NewMicroTime(clock.now().Add(off)) }
			controllertest.Create(c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
			say(t, c, corev1.ConditionTrue, theirs().Time)
			renew := theirs()
			controllertest.Create(c, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: "n"},
				Spec: coordinationv1.LeaseSpec{RenewTime: &renew}})
			n := New(c.As("nodelifecycle-controller"), c.Views(), events.New(c.Admin(), "test", "", nil), "", DefaultTimes, slog.New(slog.DiscardHandler))
			n.now = clock.now
			c.Start(n.Run)

			clock.pass(DefaultTimes.Grace - time.Second)
			if err := n.reconcile(c.Context(), loop.Key{Name: "n"}); err != nil {
				t.Fatal(err)
			}
			is(c, "still trusted", corev1.ConditionTrue, false)
			clock.pass(2 * time.Second)
			n.loop.Add(loop.Key{Name: "n"})
			is(c, "silent", corev1.ConditionFalse, true)
			clock.pass(DefaultTimes.Unknown - DefaultTimes.Grace)
			n.loop.Add(loop.Key{Name: "n"})
			is(c, "silent for some time", corev1.ConditionUnknown, true)

			clock.pass(time.Minute)
			say(t, c, corev1.ConditionTrue, theirs().Time)
			is(c, "back", corev1.ConditionTrue, false)
		})
	}
}

// Whoever sees a heartbeat in a Node also sees when it came: a node that is back is not called silent for what it has just said.
func TestHeartbeatsAreSeenWithTheirNodes(t *testing.T) {
	c := controllertest.New(t)
	clock := &testClock{at: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)}
	controllertest.Create(c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	n := New(c.As("nodelifecycle-controller"), c.Views(), events.New(c.Admin(), "test", "", nil), "", DefaultTimes, slog.New(slog.DiscardHandler))
	n.now = clock.now
	slow := make(chan struct{})
	first := informer.New[*corev1.Node](c.As("nodelifecycle-controller"), api.Nodes, informer.Options{Views: c.Views()})
	first.OnChange(func(old, _ *corev1.Node) { // another part hears of all before this one
		if old != nil {
			<-slow
		}
	})
	c.Start(first.Run)
	n.seen.begin()
	c.Start(n.nodes.Run)
	defer close(slow)
	for i := range 3 {
		clock.pass(time.Hour)
		at := clock.now()
		say(t, c, corev1.ConditionTrue, at)
		for {
			node, ok := n.nodes.Get("", "n")
			if !ok || !heartbeat(node).Equal(at) {
				runtime.Gosched()
				continue
			}
			if seen := n.seen.of("n"); !seen.Equal(at) {
				t.Fatalf("heartbeat %d came at %s, and was seen at %s", i, at, seen)
			}
			break
		}
		slow <- struct{}{}
	}
}

// clock is set by hand.
type testClock struct {
	mu sync.Mutex
	at time.Time
}

func (c *testClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *testClock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// say posts a node's status, as its kubelet does.
func say(t *testing.T, c *controllertest.Cluster, ready corev1.ConditionStatus, at time.Time) {
	t.Helper()
	for {
		old, err := client.Get[*corev1.Node](c.Context(), c.Admin(), client.Key{Kind: api.Nodes, Name: "n"})
		if err != nil {
			t.Fatal(err)
		}
		node := old.DeepCopy()
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, LastHeartbeatTime: metav1.NewTime(at)}}
		_, err = c.Admin().Update(c.Context(), node, client.WriteOptions{Subresource: "status"})
		if err == nil {
			return
		}
		if !apierrors.IsConflict(err) {
			t.Fatal(err)
		}
	}
}

// is waits until the node n is ready as said and has our taints, or not.
func is(c *controllertest.Cluster, what string, ready corev1.ConditionStatus, marked bool) {
	controllertest.Until(c, what, api.Nodes, func(nodes []*corev1.Node) bool {
		if len(nodes) != 1 {
			return false
		}
		if r := condition(nodes[0], corev1.NodeReady); r == nil || r.Status != ready {
			return false
		}
		return tainted(nodes[0]) == marked
	})
}
