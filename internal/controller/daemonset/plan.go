package daemonset

import (
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"minik8s/internal/controller/pods"
)

// burst bounds what one round creates or deletes.
const burst = 250

// plan is what has to be done about one daemon set.
type plan struct {
	create []string      // a pod for each of these nodes
	remove []*corev1.Pod // these are too many, misplaced or out of date
	failed []*corev1.Pod // these have failed and are replaced after a back-off
}

// view is what a decision is made from.
type view struct {
	ds    *appsv1.DaemonSet
	nodes []*corev1.Node
	pods  map[string][]*corev1.Pod // by node, the oldest first
	hash  string                   // of the current template
	now   time.Time
	ready func(*corev1.Pod) time.Time // since when a pod is ready; nil: as it says
}

// group groups pods by their node.
func group(list []*corev1.Pod) map[string][]*corev1.Pod {
	out := map[string][]*corev1.Pod{}
	for _, p := range list {
		out[nodeOf(p)] = append(out[nodeOf(p)], p)
	}
	for _, on := range out {
		slices.SortFunc(on, func(a, b *corev1.Pod) int {
			switch {
			case (a.Spec.NodeName != "") != (b.Spec.NodeName != ""): // a pod that runs before one that waits
				if a.Spec.NodeName != "" {
					return -1
				}
				return 1
			case !a.CreationTimestamp.Equal(&b.CreationTimestamp):
				return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
			}
			return strings.Compare(a.Name, b.Name)
		})
	}
	return out
}

// decide is the controller's decision; it is pure.
func decide(v *view) plan {
	var p plan
	if v.ds.DeletionTimestamp != nil {
		return p
	}
	known := map[string]bool{}
	for _, node := range v.nodes {
		known[node.Name] = true
		v.manage(node, &p)
	}
	for name, on := range v.pods { // pods that wait for a deleted node
		for _, pod := range on {
			// one that was adopted may wait for no node in particular
			if name != "" && !known[name] && pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil {
				p.remove = append(p.remove, pod)
			}
		}
	}
	if v.ds.Spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		v.update(&p)
	}
	p.create, p.remove = p.create[:min(len(p.create), burst)], p.remove[:min(len(p.remove), burst)]
	return p
}

func (v *view) isNew(p *corev1.Pod) bool {
	return p.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] == v.hash
}

// manage brings one node to one pod; during a surge, to one new and one old pod.
func (v *view) manage(node *corev1.Node, p *plan) {
	run, stay := eligible(v.ds, node)
	on := v.pods[node.Name]
	switch {
	case run && len(on) == 0:
		p.create = append(p.create, node.Name)
		return
	case !stay:
		for _, pod := range on {
			if pod.DeletionTimestamp == nil {
				p.remove = append(p.remove, pod)
			}
		}
		return
	}
	var fresh, old []*corev1.Pod
	for _, pod := range on {
		switch {
		case pod.DeletionTimestamp != nil:
		case pods.Finished(pod):
			p.failed = append(p.failed, pod)
		case v.isNew(pod):
			fresh = append(fresh, pod)
		default:
			old = append(old, pod)
		}
	}
	surge, _ := v.limits(1)
	if surge == 0 || v.ds.Spec.UpdateStrategy.Type != appsv1.RollingUpdateDaemonSetStrategyType {
		both := append(slices.Clone(old), fresh...)
		if len(both) > 1 {
			p.remove = append(p.remove, both[1:]...)
		}
		return
	}
	for _, extra := range [][]*corev1.Pod{fresh, old} {
		if len(extra) > 1 {
			p.remove = append(p.remove, extra[1:]...)
		}
	}
}

// limits are maxSurge and maxUnavailable as numbers of the nodes wanted.
func (v *view) limits(nodes int) (surge, unavailable int) {
	ru := v.ds.Spec.UpdateStrategy.RollingUpdate
	if ru == nil {
		return 0, 1
	}
	of := func(x *intstr.IntOrString) int {
		if x == nil {
			return 0
		}
		n, err := intstr.GetScaledValueFromIntOrPercent(x, nodes, true)
		if err != nil {
			return 0
		}
		return n
	}
	if surge, unavailable = of(ru.MaxSurge), of(ru.MaxUnavailable); surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return surge, unavailable
}

// wanted are the nodes that should run the pod.
func (v *view) wanted() []*corev1.Node {
	var out []*corev1.Node
	for _, n := range v.nodes {
		if run, _ := eligible(v.ds, n); run {
			out = append(out, n)
		}
	}
	return out
}

// pair is a node's pod of the current template and its older one, those that stay.
func (v *view) pair(node string) (fresh, old *corev1.Pod) {
	for _, p := range v.pods[node] {
		switch {
		case p.DeletionTimestamp != nil || pods.Finished(p):
		case v.isNew(p) && fresh == nil:
			fresh = p
		case !v.isNew(p) && old == nil:
			old = p
		}
	}
	return fresh, old
}

func (v *view) available(p *corev1.Pod) bool {
	ok, _ := pods.Available(p, v.ds.Spec.MinReadySeconds, v.ready, v.now)
	return ok
}

// update replaces old pods, as many at once as the strategy allows.
func (v *view) update(p *plan) {
	wanted := v.wanted()
	surge, unavailable := v.limits(len(wanted))
	if surge > 0 {
		v.updateSurging(wanted, surge, p)
		return
	}
	var candidates []*corev1.Pod
	missing := 0
	for _, n := range wanted {
		switch fresh, old := v.pair(n.Name); {
		case fresh == nil && old == nil:
			missing++
		case fresh != nil:
			if !v.available(fresh) {
				missing++
			}
		case !v.available(old): // it is not available: replacing it costs nothing
			missing++
			p.remove = appendNew(p.remove, old)
		default:
			candidates = append(candidates, old)
		}
	}
	for _, old := range candidates[:min(len(candidates), max(unavailable-missing, 0))] {
		p.remove = appendNew(p.remove, old)
	}
}

// updateSurging creates the new pod beside the old one, and deletes the old one when the new one is available.
func (v *view) updateSurging(wanted []*corev1.Node, surge int, p *plan) {
	var candidates []string
	surging := 0
	for _, n := range wanted {
		switch fresh, old := v.pair(n.Name); {
		case old == nil:
		case fresh == nil && !v.available(old):
			p.create = appendNew(p.create, n.Name)
		case fresh == nil:
			candidates = append(candidates, n.Name)
		case v.available(fresh):
			p.remove = appendNew(p.remove, old)
		default:
			surging++
		}
	}
	for _, name := range candidates[:min(len(candidates), max(surge-surging, 0))] {
		p.create = appendNew(p.create, name)
	}
}

func appendNew[T comparable](list []T, item T) []T {
	if slices.Contains(list, item) {
		return list
	}
	return append(list, item)
}

// status is the daemon set's status. lookAgain is when a pod will have been ready for long enough; 0 if none is
// waiting for that.
func (v *view) status() (s appsv1.DaemonSetStatus, lookAgain time.Duration) {
	s = *v.ds.Status.DeepCopy()
	s.CurrentNumberScheduled, s.NumberMisscheduled, s.DesiredNumberScheduled, s.NumberReady = 0, 0, 0, 0
	s.UpdatedNumberScheduled, s.NumberAvailable = 0, 0
	s.ObservedGeneration = v.ds.Generation
	for _, n := range v.nodes {
		run, _ := eligible(v.ds, n)
		on := v.pods[n.Name]
		if !run {
			if len(on) > 0 {
				s.NumberMisscheduled++
			}
			continue
		}
		s.DesiredNumberScheduled++
		if len(on) == 0 {
			continue
		}
		s.CurrentNumberScheduled++
		for _, p := range on {
			if _, wait := pods.Available(p, v.ds.Spec.MinReadySeconds, v.ready, v.now); wait > 0 && (lookAgain == 0 || wait < lookAgain) {
				lookAgain = wait
			}
		}
		// The oldest pod counts: until it has made room for the new one, the node is not updated.
		if pods.Ready(on[0]) {
			s.NumberReady++
		}
		if v.available(on[0]) {
			s.NumberAvailable++
		}
		if v.isNew(on[0]) {
			s.UpdatedNumberScheduled++
		}
	}
	s.NumberUnavailable = s.DesiredNumberScheduled - s.NumberAvailable
	return s, lookAgain
}
