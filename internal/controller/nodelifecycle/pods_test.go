package nodelifecycle

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/faulty"
	"minik8s/internal/controller/controllertest"
	"minik8s/internal/controller/loop"
	"minik8s/internal/events"
)

// Every pod of a node that is not ready is marked so, whatever fails on the way, also if another writer marked the
// node and not its pods.
func TestPodsOfUnreadyNodes(t *testing.T) {
	rates := faulty.Rates{Drop: 0.2, Lose: 0.2, Conflict: 0.2, Repeat: 0.2, Break: 0.05}
	const pods = 12
	for _, x := range []struct {
		name  string
		ready corev1.ConditionStatus // when the controller begins
		quiet bool                   // and then nothing more is heard
		want  corev1.ConditionStatus // of the node, in the end
	}{
		{"falls silent", corev1.ConditionTrue, true, corev1.ConditionUnknown},
		{"said to be silent by a controller that ended then", corev1.ConditionUnknown, false, corev1.ConditionUnknown},
		{"says so itself", corev1.ConditionFalse, false, corev1.ConditionFalse},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := controllertest.New(t)
			clock := &testClock{at: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)}
			controllertest.Create(c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
			say(t, c, x.ready, clock.now())
			for i := range pods {
				readyPod(t, c, fmt.Sprint("p", i), "n")
			}
			readyPod(t, c, "elsewhere", "m")
			n := New(faulty.New(c.As("nodelifecycle-controller"), rates, 1), nil, events.New(c.Admin(), "test", "", nil), "", DefaultTimes, slog.New(slog.DiscardHandler))
			n.now = clock.now
			c.Start(n.Run)
			if x.quiet {
				clock.pass(DefaultTimes.Unknown + time.Second)
				controllertest.Until(c, "silent", api.Nodes, func(nodes []*corev1.Node) bool {
					n.loop.Add(loop.Key{Name: "n"})
					return condition(nodes[0], corev1.NodeReady).Status == corev1.ConditionUnknown
				})
			}
			is(c, x.name, x.want, true)
			controllertest.Until(c, "none of them ready", api.Pods, func(all []*corev1.Pod) bool {
				for _, p := range all {
					if isReady(p) != (p.Name == "elsewhere") {
						return false
					}
				}
				return len(all) == pods+1
			})
		})
	}
}

// The pods of a kubelet that sends heartbeats are marked once, and not again when it marks them ready, until the node
// becomes not ready once more.
func TestOnceInASpell(t *testing.T) {
	c := controllertest.New(t)
	controllertest.Create(c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	say(t, c, corev1.ConditionFalse, time.Now())
	readyPod(t, c, "p", "n")
	n := New(c.As("nodelifecycle-controller"), c.Views(), events.New(c.Admin(), "test", "", nil), "", DefaultTimes, slog.New(slog.DiscardHandler))
	n.seen.begin()
	look := func(since metav1.Time, status corev1.ConditionStatus) bool {
		t.Helper()
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: since}}}}
		if err := n.markPodsNotReady(c.Context(), node, DefaultTimes.decide(node, n.now(), n.now(), false)); err != nil {
			t.Fatal(err)
		}
		pod := controllertest.Until(c, "it is there", api.Pods, func(all []*corev1.Pod) bool { return len(all) == 1 })[0]
		was := isReady(pod)
		setReady(t, c, "p")
		return was
	}
	first, second := metav1.NewTime(time.Unix(1000, 0)), metav1.NewTime(time.Unix(2000, 0))
	for _, x := range []struct {
		name   string
		since  metav1.Time
		status corev1.ConditionStatus
		ready  bool // that is what the pod is afterwards
	}{
		{"not ready", first, corev1.ConditionFalse, false},
		{"another heartbeat", first, corev1.ConditionFalse, true},
		{"well", first, corev1.ConditionTrue, true},
		{"not ready again", second, corev1.ConditionFalse, false},
	} {
		if got := look(x.since, x.status); got != x.ready {
			t.Errorf("%s: ready %v", x.name, got)
		}
	}
}

func readyPod(t *testing.T, c *controllertest.Cluster, name, node string) {
	t.Helper()
	controllertest.Create(c, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "i"}}}})
	setReady(t, c, name)
}

// setReady is what a pod's kubelet says of it.
func setReady(t *testing.T, c *controllertest.Cluster, name string) {
	t.Helper()
	old, err := client.Get[*corev1.Pod](c.Context(), c.Admin(), client.Key{Kind: api.Pods, Namespace: "default", Name: name})
	if err != nil {
		t.Fatal(err)
	}
	pod := old.DeepCopy()
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if _, err := c.Admin().Update(c.Context(), pod, client.WriteOptions{Subresource: "status"}); err != nil {
		t.Fatal(err)
	}
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
