package nodelifecycle

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
)

// plan is what to do about one node.
type plan struct {
	status    *corev1.Node            // write this status
	taints    *corev1.ConditionStatus // set our taints to those of this Ready status, and of the other conditions
	unready   bool                    // its pods have to be marked as not ready
	silent    bool
	evict     bool          // our taints may evict pods
	remove    bool          // the Node goes, and its pods with it
	lookAgain time.Duration // 0: when the node changes
}

// ours are the taints that follow the Ready condition; their pods may be evicted.
var ours = []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable}

// byCondition are the taints against scheduling that follow the other conditions, while these are True, as Kubernetes
// sets them. Another one says that the node is cordoned.
var byCondition = map[corev1.NodeConditionType]string{
	corev1.NodeMemoryPressure:     corev1.TaintNodeMemoryPressure,
	corev1.NodeDiskPressure:       corev1.TaintNodeDiskPressure,
	corev1.NodePIDPressure:        corev1.TaintNodePIDPressure,
	corev1.NodeNetworkUnavailable: corev1.TaintNodeNetworkUnavailable,
}

func tainted(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return slices.Contains(ours, t.Key) })
}

// Times are the rungs of the ladder that a silent node goes down, counted from its last heartbeat.
type Times struct {
	// Grace is when it counts as unhealthy: Ready=False. Unknown is when nobody can say any more what it does:
	// Ready=Unknown, as Kubernetes has it from the start; no more than Grace: at once. Remove is when its Node is deleted;
	// 0: never.
	Grace, Unknown, Remove time.Duration
}

// DefaultTimes are the seed systems'.
var DefaultTimes = Times{Grace: 40 * time.Second, Unknown: 2 * time.Minute, Remove: 4 * time.Minute}

// A zone is disrupted when more than manyLost machines in it are silent that are more than disruptedAt of it, and every zone
// when all machines but the master's own are silent, if there are several: then it is rather the master that is cut off. No
// pod of such a zone is evicted, and no Node removed. A zone of which nothing is heard while others are heard is lost, and
// its pods are needed elsewhere. The rules and numbers are Kubernetes' (--unhealthy-zone-threshold); of the loss of a single
// other machine nobody can say whose it is.
const (
	manyLost    = 2
	disruptedAt = 0.55
)

// count is about machines that have had a kubelet, without the master's own.
type count struct {
	silent, others int
	own            bool // the master's own is among them
}

func (c *count) add(own, silent bool) {
	switch {
	case own:
		c.own = true
	case silent:
		c.silent++
		c.others++
	default:
		c.others++
	}
}

// disrupted decides about a zone.
func disrupted(everywhere, zone count) bool {
	switch {
	case everywhere.silent == everywhere.others:
		return everywhere.others != 1
	case zone.silent == zone.others && !zone.own:
		return false
	}
	return zone.silent > manyLost && float64(zone.silent) >= disruptedAt*float64(zone.others)
}

// zoneOf is where a node is, by the labels that a cloud or a person gives it.
func zoneOf(n *corev1.Node) [2]string {
	return [2]string{n.Labels[corev1.LabelTopologyRegion], n.Labels[corev1.LabelTopologyZone]}
}

// decide is the controller's decision, from the node as it stands, when its last heartbeat was seen, and whether its
// zone is disrupted; it is pure.
func (t Times) decide(node *corev1.Node, seen, now time.Time, disrupted bool) plan {
	p := plan{evict: !disrupted}
	ready := condition(node, corev1.NodeReady)
	status := corev1.ConditionUnknown
	if ready != nil {
		status = ready.Status
	}
	if silent := now.Sub(seen); silent > t.Grace {
		p.silent = true
		switch {
		case silent <= t.Unknown && ready != nil:
			if status == corev1.ConditionTrue {
				p.status, status = unhealthy(node, t, now), corev1.ConditionFalse
			}
			p.lookAgain = t.Unknown - silent + rounding
		default:
			if status != corev1.ConditionUnknown && ready != nil {
				p.status = unknown(node, now)
			}
			status = corev1.ConditionUnknown
		}
		switch {
		case t.Remove <= 0 || ready == nil: // one that was made by a manifest waits for its kubelet
		case silent > t.Remove:
			p.remove = !disrupted
		case p.lookAgain == 0 || t.Remove-silent+rounding < p.lookAgain:
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

// unhealthy is the node with its Ready condition False, because it is silent.
func unhealthy(node *corev1.Node, t Times, now time.Time) *corev1.Node {
	n := node.DeepCopy()
	c := condition(n, corev1.NodeReady)
	c.Status, c.Reason = corev1.ConditionFalse, api.NodeSilent
	c.Message = fmt.Sprintf("Kubelet has not renewed its lease for %s.", t.Grace)
	c.LastTransitionTime = metav1.NewTime(now)
	return n
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

// taintsFor is the node's taints, with those of this controller as its conditions ask for; without evict none that evicts
// pods. Taints of others stay as they are.
func taintsFor(node *corev1.Node, ready corev1.ConditionStatus, evict bool, now time.Time) []corev1.Taint {
	wanted := wantedTaints(node, ready, evict, now)
	var out []corev1.Taint
	for _, t := range node.Spec.Taints {
		i := slices.IndexFunc(wanted, func(w corev1.Taint) bool { return w.MatchTaint(&t) })
		switch {
		case i >= 0:
			wanted = slices.Delete(wanted, i, i+1)
		case controlled(&t):
			for i := range wanted { // the other rung's takes its place: what pods tolerate is counted on
				if w := &wanted[i]; w.Effect == t.Effect && t.TimeAdded != nil && slices.Contains(ours, w.Key) && slices.Contains(ours, t.Key) {
					w.TimeAdded = t.TimeAdded
				}
			}
			continue
		}
		out = append(out, t)
	}
	return append(out, wanted...)
}

func wantedTaints(node *corev1.Node, ready corev1.ConditionStatus, evict bool, now time.Time) (out []corev1.Taint) {
	at := metav1.NewTime(now)
	add := func(key string, e corev1.TaintEffect) {
		out = append(out, corev1.Taint{Key: key, Effect: e, TimeAdded: &at})
	}
	key := map[corev1.ConditionStatus]string{
		corev1.ConditionFalse: corev1.TaintNodeNotReady, corev1.ConditionUnknown: corev1.TaintNodeUnreachable}[ready]
	if key != "" {
		add(key, corev1.TaintEffectNoSchedule)
	}
	if key != "" && evict {
		add(key, corev1.TaintEffectNoExecute)
	}
	for _, c := range node.Status.Conditions {
		if key := byCondition[c.Type]; key != "" && c.Status == corev1.ConditionTrue {
			add(key, corev1.TaintEffectNoSchedule)
		}
	}
	if node.Spec.Unschedulable {
		add(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule)
	}
	return out
}

// controlled reports whether a taint is there or not as this controller says.
func controlled(t *corev1.Taint) bool {
	if slices.Contains(ours, t.Key) {
		return true
	}
	if t.Effect != corev1.TaintEffectNoSchedule {
		return false
	}
	for _, key := range byCondition {
		if key == t.Key {
			return true
		}
	}
	return t.Key == corev1.TaintNodeUnschedulable
}

func sameTaints(a, b []corev1.Taint) bool {
	return slices.EqualFunc(a, b, func(x, y corev1.Taint) bool { return x.Key == y.Key && x.Effect == y.Effect && x.Value == y.Value })
}
