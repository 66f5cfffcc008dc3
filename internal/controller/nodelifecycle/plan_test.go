package nodelifecycle

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDecide(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	node := func(ready corev1.ConditionStatus, taints ...corev1.Taint) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", CreationTimestamp: ago(time.Hour)}, Spec: corev1.NodeSpec{Taints: taints},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, LastHeartbeatTime: ago(time.Hour)}}}}
	}
	gone := []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule}, {Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}}
	mine := corev1.Taint{Key: "mine", Effect: corev1.TaintEffectNoSchedule}
	never := node(corev1.ConditionTrue)
	never.Status.Conditions = nil
	for _, x := range []struct {
		name           string
		node           *corev1.Node
		seen           time.Duration // ago
		disrupted      bool
		status, taints bool
		unready        bool
		remove         bool
		again          time.Duration
	}{
		{"alive", node(corev1.ConditionTrue), 5 * time.Second, false, false, false, false, false, 35 * time.Second},
		{"silent", node(corev1.ConditionTrue), time.Minute, false, true, true, true, false, 3 * time.Minute},
		{"silent, and said so", node(corev1.ConditionUnknown, gone...), time.Minute, false, false, false, true, false, 3 * time.Minute},
		{"silent for long", node(corev1.ConditionUnknown, gone...), 5 * time.Minute, false, false, false, true, true, 0},
		{"silent for long, like all others", node(corev1.ConditionUnknown, gone[0]), 5 * time.Minute, true, false, false, true, false, 40 * time.Second},
		{"silent, and now most others too", node(corev1.ConditionUnknown, gone...), time.Minute, true, false, true, true, false, 40 * time.Second},
		{"made by a manifest, long ago", never, time.Hour, false, false, true, false, false, 0},
		{"back", node(corev1.ConditionTrue, gone...), time.Second, false, false, true, false, false, 39 * time.Second},
		{"says that it is not ready", node(corev1.ConditionFalse), time.Second, false, false, true, true, false, 39 * time.Second},
	} {
		t.Run(x.name, func(t *testing.T) {
			p := DefaultTimes.decide(x.node, now.Add(-x.seen), now, x.disrupted)
			if (p.status != nil) != x.status || (p.taints != nil) != x.taints || p.unready != x.unready || p.remove != x.remove || p.lookAgain.Truncate(time.Second) != x.again {
				t.Errorf("%+v", p)
			}
		})
	}
	if got := taintsFor(node(corev1.ConditionUnknown, gone...), corev1.ConditionUnknown, false, now); len(got) != 1 || got[0].Effect != corev1.TaintEffectNoSchedule {
		t.Errorf("in a disrupted cluster there is %v", got)
	}
	for _, x := range []struct {
		silent, others int
		want           bool
	}{{0, 0, true}, {1, 1, false}, {1, 2, false}, {2, 2, true}, {2, 3, false}, {3, 4, true}, {3, 6, false}, {5, 9, true}, {5, 10, false}, {10, 10, true}} {
		if got := disrupted(x.silent, x.others); got != x.want {
			t.Errorf("%d of %d others silent: %v", x.silent, x.others, got)
		}
	}
	// Taints of others stay as they are, whatever becomes of ours.
	got := taintsFor(node(corev1.ConditionTrue, append([]corev1.Taint{mine}, gone...)...), corev1.ConditionTrue, true, now)
	if len(got) != 1 || got[0].Key != "mine" {
		t.Errorf("left %v", got)
	}
}
