package nodelifecycle

import (
	"strings"
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
	unready := []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}, {Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute}}
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
		{"silent", node(corev1.ConditionTrue), time.Minute, false, true, true, true, false, time.Minute},
		{"silent, and said so", node(corev1.ConditionFalse, unready...), time.Minute, false, false, false, true, false, time.Minute},
		{"silent, and was unknown when this controller took over", node(corev1.ConditionUnknown, gone...), time.Minute, false, false, false, true, false, time.Minute},
		{"silent for some time", node(corev1.ConditionFalse, unready...), 3 * time.Minute, false, true, true, true, false, time.Minute},
		{"silent for some time, and said so", node(corev1.ConditionUnknown, gone...), 3 * time.Minute, false, false, false, true, false, time.Minute},
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
		if one := (count{x.silent, x.others, true}); disrupted(one, one) != x.want {
			t.Errorf("%d of %d others silent: want %v", x.silent, x.others, x.want)
		}
	}
	for _, x := range []struct {
		name             string
		everywhere, zone count
		want             bool
	}{
		{"a zone is lost, and most machines with it", count{6, 9, true}, count{6, 6, false}, false},
		{"most of a zone, a few of all", count{3, 20, true}, count{3, 5, false}, true},
		{"half of a zone", count{3, 20, true}, count{3, 6, false}, false},
		{"all of the master's own zone but itself", count{3, 20, true}, count{3, 3, true}, true},
		{"everything", count{9, 9, true}, count{6, 6, false}, true},
	} {
		if got := disrupted(x.everywhere, x.zone); got != x.want {
			t.Errorf("%s: disrupted is %v", x.name, got)
		}
	}
	// What Kubernetes had before there was the rung of the seed systems, and what a removal before it leaves out.
	for _, x := range []struct {
		times Times
		want  corev1.ConditionStatus
		again time.Duration
	}{
		{Times{Grace: 40 * time.Second, Remove: 4 * time.Minute}, corev1.ConditionUnknown, 3 * time.Minute},
		{Times{Grace: 40 * time.Second, Unknown: 2 * time.Minute, Remove: 90 * time.Second}, corev1.ConditionFalse, 30 * time.Second},
		{Times{Grace: 40 * time.Second, Unknown: 2 * time.Minute}, corev1.ConditionFalse, time.Minute},
	} {
		p := x.times.decide(node(corev1.ConditionTrue), now.Add(-time.Minute), now, false)
		if got := condition(p.status, corev1.NodeReady).Status; got != x.want || p.lookAgain.Truncate(time.Second) != x.again {
			t.Errorf("%+v: %s, again after %s", x.times, got, p.lookAgain)
		}
	}
	// Taints of others stay as they are, whatever becomes of ours.
	got := taintsFor(node(corev1.ConditionTrue, append([]corev1.Taint{mine}, gone...)...), corev1.ConditionTrue, true, now)
	if len(got) != 1 || got[0].Key != "mine" {
		t.Errorf("left %v", got)
	}
}

// The taints against scheduling follow the node's conditions and the cordon; what others have set stays.
func TestTaintsByCondition(t *testing.T) {
	taint := func(key string, e corev1.TaintEffect) corev1.Taint { return corev1.Taint{Key: key, Effect: e} }
	node := &corev1.Node{Spec: corev1.NodeSpec{Unschedulable: true, Taints: []corev1.Taint{
		taint("mine", corev1.TaintEffectNoSchedule),
		taint(corev1.TaintNodeDiskPressure, corev1.TaintEffectNoExecute), // somebody's own
		taint(corev1.TaintNodePIDPressure, corev1.TaintEffectNoSchedule), // not any more
		taint(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule),
	}}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue},
		{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse},
		{Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionTrue},
	}}}
	for _, x := range []struct{ ready, want string }{
		{"True", "mine:NoSchedule disk-pressure:NoExecute memory-pressure:NoSchedule disk-pressure:NoSchedule network-unavailable:NoSchedule unschedulable:NoSchedule"},
		{"Unknown", "mine:NoSchedule disk-pressure:NoExecute memory-pressure:NoSchedule unreachable:NoSchedule unreachable:NoExecute disk-pressure:NoSchedule network-unavailable:NoSchedule unschedulable:NoSchedule"},
	} {
		var got []string
		for _, taint := range taintsFor(node, corev1.ConditionStatus(x.ready), true, time.Now()) {
			got = append(got, strings.TrimPrefix(taint.Key, "node.kubernetes.io/")+":"+string(taint.Effect))
		}
		if text := strings.Join(got, " "); text != x.want {
			t.Errorf("Ready=%s: %s\nwant %s", x.ready, text, x.want)
		}
	}
	// The second rung's taint counts from when the first one's did.
	since := metav1.NewTime(time.Unix(1000, 0))
	down := &corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute, TimeAdded: &since}}}}
	for _, taint := range taintsFor(down, corev1.ConditionUnknown, true, time.Now()) {
		if taint.Effect == corev1.TaintEffectNoExecute && (taint.Key != corev1.TaintNodeUnreachable || !taint.TimeAdded.Equal(&since)) {
			t.Errorf("%+v", taint)
		}
	}
	node.Spec.Unschedulable, node.Status.Conditions = false, nil
	if got := taintsFor(node, corev1.ConditionTrue, true, time.Now()); len(got) != 2 {
		t.Errorf("left %v", got)
	}
}
