package plan

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"minik8s/internal/api/placement"
)

// node is a node with the sums over the pods that count on it.
type node struct {
	name  string
	index int32
	obj   *corev1.Node // nil: pods on it are known, but the node is not (yet)

	ready     corev1.ConditionStatus
	room      []int64 // allocatable, by resource
	maxPods   int
	used      []int64 // requested, by resource
	load      [2]int64
	ports     map[placement.Port]int
	pods      []*Pod
	tainted   []string // the reason text for each taint
	turn      uint64   // when it was last chosen: of equal nodes, the one chosen longest ago is next
	usage     [2]int64 // as reported by the node
	reported  bool
	sinceThen [2]int64 // weight of the pods that came after the report
}

// Change says how a node changed, in the ways that may let a waiting pod fit.
type Change uint8

// The kinds of changes.
const (
	Added  Change = 1 << iota
	Opened        // readiness, cordon or taints changed
	Labelled
	Grew
)

// SetNode stores the present state of a node and returns what changed.
func (c *Cluster) SetNode(obj *corev1.Node) Change {
	n := c.byName[obj.Name]
	if n == nil {
		n = c.add(obj.Name)
	}
	ready := readiness(obj)
	change := changeOf(n, obj, ready)
	if n.obj == nil {
		c.known++
	}
	moved := change&(Added|Labelled) != 0
	if moved { // its pods count in other domains now
		for _, p := range n.pods {
			c.count(p, n, -1)
		}
	}
	n.obj, n.ready = obj, ready
	if moved {
		for _, t := range c.topologies {
			t.set(n)
		}
		for _, p := range n.pods {
			c.count(p, n, 1)
		}
	}
	if change&(Added|Grew) != 0 {
		n.room = c.resources.list(obj.Status.Allocatable)
		pods := obj.Status.Allocatable[corev1.ResourcePods]
		n.maxPods = int(pods.Value())
	}
	if change&(Added|Opened) != 0 {
		n.tainted = n.tainted[:0]
		for _, t := range obj.Spec.Taints {
			n.tainted = append(n.tainted, fmt.Sprintf("node(s) had untolerated taint {%s: %s}", t.Key, t.Value))
		}
	}
	if change != 0 {
		c.touch(n)
	}
	return change
}

// readiness is the status of a node's Ready condition.
func readiness(obj *corev1.Node) corev1.ConditionStatus {
	for i := range obj.Status.Conditions {
		if obj.Status.Conditions[i].Type == corev1.NodeReady {
			return obj.Status.Conditions[i].Status
		}
	}
	return corev1.ConditionUnknown
}

// changeOf is what differs between a node as it was stored last and as it is now.
func changeOf(n *node, now *corev1.Node, ready corev1.ConditionStatus) (change Change) {
	old := n.obj
	if old == nil {
		return Added
	}
	if ready != n.ready || old.Spec.Unschedulable != now.Spec.Unschedulable || !slices.EqualFunc(old.Spec.Taints, now.Spec.Taints,
		func(a, b corev1.Taint) bool { return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect }) {
		change |= Opened
	}
	if !maps.Equal(old.Labels, now.Labels) {
		change |= Labelled
	}
	if !sameAmounts(old.Status.Allocatable, now.Status.Allocatable) {
		change |= Grew
	}
	return change
}

func sameAmounts(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 })
}

// RemoveNode forgets a node. Its pods still count until they are removed too.
func (c *Cluster) RemoveNode(name string) {
	n := c.byName[name]
	if n == nil || n.obj == nil {
		return
	}
	for _, p := range n.pods {
		c.count(p, n, -1)
	}
	n.obj, n.reported = nil, false
	for _, t := range c.topologies {
		t.set(n)
	}
	for _, p := range n.pods {
		c.count(p, n, 1)
	}
	c.known--
	c.touch(n)
	c.drop(n)
}

// add gives a new node an index in the array.
func (c *Cluster) add(name string) *node {
	n := &node{name: name, ports: map[placement.Port]int{}}
	if last := len(c.free) - 1; last >= 0 {
		n.index = c.free[last]
		c.free = c.free[:last]
		c.nodes[n.index] = n
	} else {
		n.index = int32(len(c.nodes))
		c.nodes = append(c.nodes, n)
	}
	c.byName[name] = n
	for _, t := range c.topologies {
		t.set(n)
	}
	return n
}

// drop frees a node's index when neither the node nor pods on it are known.
func (c *Cluster) drop(n *node) {
	if n.obj != nil || len(n.pods) > 0 || c.byName[n.name] != n {
		return
	}
	delete(c.byName, n.name)
	// The empty node stays at this index until another node takes it.
	c.free = append(c.free, n.index)
}

// open reports whether the node accepts pods at all, given the pod's tolerations.
func (n *node) open(tolerations []corev1.Toleration) (ok bool, why string) {
	if n.obj.Spec.Unschedulable && !placement.Tolerates(tolerations, &closed) {
		return false, "node(s) were unschedulable"
	}
	switch n.ready {
	case corev1.ConditionTrue:
		return true, ""
	case corev1.ConditionFalse:
		ok = placement.Tolerates(tolerations, &notReady)
	default:
		ok = placement.Tolerates(tolerations, &unreachable)
	}
	return ok, "node(s) were not ready"
}

// The taints that a node counts as having, even if not in its spec, when it is not ready or has not been heard of.
var (
	notReady    = corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}
	unreachable = corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule}
)

func (n *node) fits(p *Pod) bool {
	if len(n.pods)+1 > n.maxPods {
		return false
	}
	for _, w := range p.wants {
		if at(n.used, w.id)+w.n > at(n.room, w.id) {
			return false
		}
	}
	return true
}

func (n *node) portsFree(p *Pod) bool {
	if len(p.ports) == 0 || len(n.ports) == 0 {
		return true
	}
	for _, want := range p.ports {
		for have := range n.ports {
			if want.Clashes(have) {
				return false
			}
		}
	}
	return true
}

// SetUsage stores the real usage that a node reports: thousandths of a core, and bytes.
func (c *Cluster) SetUsage(name string, cpuMillis, memoryBytes int64) {
	n := c.byName[name]
	if n == nil {
		return
	}
	now := [2]int64{cpuMillis, memoryBytes}
	if n.reported && n.usage == now && n.sinceThen == [2]int64{} {
		return
	}
	n.usage, n.reported, n.sinceThen = now, true, [2]int64{}
	if c.strategy == MinCPU || c.strategy == MinMem {
		c.touch(n)
	}
}
