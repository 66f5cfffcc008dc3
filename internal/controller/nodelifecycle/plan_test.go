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
	for _, x := range []struct {
		name           string
		node           *corev1.Node
		seen           time.Duration // ago
		status, taints bool
		again          time.Duration
	}{
		{"alive", node(corev1.ConditionTrue), 5 * time.Second, false, false, 36 * time.Second},
		{"silent", node(corev1.ConditionTrue), time.Minute, true, true, 0},
		{"silent, and said so", node(corev1.ConditionUnknown, gone...), time.Minute, false, false, 0},
		{"back", node(corev1.ConditionTrue, gone...), time.Second, false, true, 40 * time.Second},
		{"says that it is not ready", node(corev1.ConditionFalse), time.Second, false, true, 40 * time.Second},
	} {
		t.Run(x.name, func(t *testing.T) {
			p := decide(x.node, now.Add(-x.seen), now)
			if (p.status != nil) != x.status || (p.taints != nil) != x.taints || p.lookAgain.Round(time.Second) != x.again {
				t.Errorf("%+v", p)
			}
		})
	}
	// Taints of others stay as they are, whatever becomes of ours.
	got := taintsFor(node(corev1.ConditionTrue, append([]corev1.Taint{mine}, gone...)...), corev1.ConditionTrue, now)
	if len(got) != 1 || got[0].Key != "mine" {
		t.Errorf("left %v", got)
	}
}
