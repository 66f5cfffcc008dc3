package nodelifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// plan is what to do about one node.
type plan struct {
	status    *corev1.Node            // write this status
	taints    *corev1.ConditionStatus // set our taints to those of this Ready status
	unready   bool                    // its pods have to be marked as not ready
	silent    bool
	evict     bool          // our taints may evict pods
	remove    bool          // the Node goes, and its pods with it
	lookAgain time.Duration // 0: when the node changes
}

// ours are the taints that this controller owns; they follow the Ready condition.
var ours = []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable}

func tainted(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return slices.Contains(ours, t.Key) })
}

// Times are the rungs of the ladder that a silent node goes down, counted from its last heartbeat.
type Times struct {
	// Grace is when it counts as lost: Ready=Unknown. Remove is when its Node is deleted; 0: never.
	Grace, Remove time.Duration
}

// DefaultTimes are the earlier default of Kubernetes' node-monitor-grace-period, and the seed systems' times.
var DefaultTimes = Times{Grace: 40 * time.Second, Remove: 4 * time.Minute}

// A cluster is disrupted when all machines but the master's own seem lost, if there are several, or more than manyLost
// that are more than disruptedAt of them: then it is rather the master that is cut off. No pod is evicted then, and no
// Node removed. The numbers are Kubernetes' (--unhealthy-zone-threshold); of the loss of a single other machine nobody can
// say whose it is.
const (
	manyLost    = 2
	disruptedAt = 0.55
)

// disrupted is about the other machines: those that have had a kubelet, without this one.
func disrupted(silent, others int) bool {
	return silent == others && others != 1 || silent > manyLost && float64(silent) >= disruptedAt*float64(others)
}

// decide is the controller's decision, from the node as it stands, when its last heartbeat was seen, and whether the
// cluster is disrupted; it is pure.
func (t Times) decide(node *corev1.Node, seen, now time.Time, disrupted bool) plan {
	p := plan{evict: !disrupted}
	ready := condition(node, corev1.NodeReady)
	status := corev1.ConditionUnknown
	if ready != nil {
		status = ready.Status
	}
	if silent := now.Sub(seen); silent > t.Grace {
		if status != corev1.ConditionUnknown && ready != nil {
			p.status = unknown(node, now)
		}
		status = corev1.ConditionUnknown
		p.silent = true
		switch {
		case t.Remove <= 0 || ready == nil: // one that was made by a manifest waits for its kubelet
		case silent > t.Remove:
			p.remove = !disrupted
		default:
			p.lookAgain = t.Remove - silent + rounding
		}
		if disrupted {
			p.lookAgain = t.Grace // whether it still is
		}
	} else {
		p.lookAgain = t.Grace - silent + rounding
	}
	if want := taintsFor(node, status, p.evict, now); !sameTaints(want, node.Spec.Taints) {
		p.taints = &status
	}
	p.unready = ready != nil && status != corev1.ConditionTrue
	return p
}

func condition(n *corev1.Node, t corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == t {
			return &n.Status.Conditions[i]
		}
	}
	return nil
}

// unknown is the node with every condition set to Unknown.
func unknown(node *corev1.Node, now time.Time) *corev1.Node {
	n := node.DeepCopy()
	for i := range n.Status.Conditions {
		c := &n.Status.Conditions[i]
		if c.Status != corev1.ConditionUnknown {
			c.Status, c.Reason = corev1.ConditionUnknown, "NodeStatusUnknown"
			c.Message = "Kubelet stopped posting node status."
			c.LastTransitionTime = metav1.NewTime(now)
		}
	}
	return n
}

// rounding is how long after a rung's time it is looked again.
const rounding = 100 * time.Millisecond

// taintsFor is the node's taints with ours as its Ready condition asks for; without evict none that evicts pods.
func taintsFor(node *corev1.Node, ready corev1.ConditionStatus, evict bool, now time.Time) []corev1.Taint {
	want := map[corev1.ConditionStatus]string{
		corev1.ConditionFalse: corev1.TaintNodeNotReady, corev1.ConditionUnknown: corev1.TaintNodeUnreachable}[ready]
	var out []corev1.Taint
	have := map[corev1.TaintEffect]bool{}
	for _, t := range node.Spec.Taints {
		if slices.Contains(ours, t.Key) {
			if t.Key != want || !evict && t.Effect == corev1.TaintEffectNoExecute {
				continue
			}
			have[t.Effect] = true
		}
		out = append(out, t)
	}
	if want != "" {
		at := metav1.NewTime(now)
		for _, e := range []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute} {
			if !have[e] && (evict || e != corev1.TaintEffectNoExecute) {
				out = append(out, corev1.Taint{Key: want, Effect: e, TimeAdded: &at})
			}
		}
	}
	return out
}

func sameTaints(a, b []corev1.Taint) bool {
	return slices.EqualFunc(a, b, func(x, y corev1.Taint) bool { return x.Key == y.Key && x.Effect == y.Effect && x.Value == y.Value })
}
