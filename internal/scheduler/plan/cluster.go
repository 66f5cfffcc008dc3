package plan

import (
	"maps"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api/placement"
)

// Cluster holds the nodes and the pods that count on them, updated by events. Only one goroutine may use it.
type Cluster struct {
	resources  *resources
	nodes      []*node // by index; a free place holds a node that is not known
	free       []int32
	byName     map[string]*node
	known      int // number of nodes whose object is known
	pods       map[types.UID]*Pod
	namespaces placement.NamespaceLabels

	topologies map[string]*topology
	counters   map[string]*counter
	index      map[indexKey][]*counter
	wide       []*counter
	clock      uint64 // counts uses of counters
	limit      int

	classes map[string]*class
	// changes is the log of nodes that changed. Its first entry has the number first.
	changes []int32
	first   int

	strategy Strategy
	turn     uint64
	rand     *rand.Rand

	// Memory that is reused, so that a decision allocates almost nothing.
	buf    []byte
	found  []*counter
	walk   []int32
	dyn    dynamics
	counts [][]int32 // per domain, for each constraint
}

// New returns an empty cluster with the default strategy. The seed makes the random strategy repeatable.
func New(seed uint64) *Cluster {
	return &Cluster{
		resources: newResources(), byName: map[string]*node{}, pods: map[types.UID]*Pod{},
		namespaces: placement.NamespaceLabels{}, topologies: map[string]*topology{},
		counters: map[string]*counter{}, index: map[indexKey][]*counter{}, limit: maxCounters,
		classes: map[string]*class{}, strategy: Spread, rand: rand.New(rand.NewPCG(seed, seed)),
	}
}

// SetStrategy sets how Choose chooses among nodes that a pod prefers equally.
func (c *Cluster) SetStrategy(s Strategy) {
	if s == c.strategy {
		return
	}
	c.strategy = s
	clear(c.classes) // the strategy changes their order
}

// SetNamespace stores the labels of a namespace and reports whether they changed.
func (c *Cluster) SetNamespace(name string, labels map[string]string) bool {
	old, had := c.namespaces[name]
	c.namespaces[name] = labels
	if had && maps.Equal(old, labels) {
		return false
	}
	c.recountWide()
	return true
}

// RemoveNamespace forgets a namespace.
func (c *Cluster) RemoveNamespace(name string) {
	delete(c.namespaces, name)
	c.recountWide()
}

// recountWide makes the terms that select namespaces by label be counted again at their next use.
func (c *Cluster) recountWide() {
	for _, ct := range c.counters {
		for i := range ct.match {
			if ct.match[i].NamespaceLabels != nil {
				ct.tracked = false
			}
		}
	}
}

// Place counts a pod on a node; if it counts on another node, it is moved. The node need not be known.
func (c *Cluster) Place(p *Pod, name string) {
	uid := p.Obj.UID
	if c.pods[uid] != nil {
		c.Remove(uid)
	}
	n := c.byName[name]
	if n == nil {
		n = c.add(name)
	}
	for i := range p.anti {
		p.anti[i] = c.live(p.anti[i])
		p.anti[i].owned++
	}
	p.where, p.slot = n, len(n.pods)
	n.pods = append(n.pods, p)
	c.pods[uid] = p
	for _, w := range p.wants {
		for w.id >= len(n.used) {
			n.used = append(n.used, 0)
		}
		n.used[w.id] += w.n
	}
	for r := range n.load {
		n.load[r] += p.weight[r]
		n.sinceThen[r] += p.weight[r]
	}
	for _, hp := range p.ports {
		n.ports[hp]++
	}
	c.count(p, n, 1)
	c.touch(n)
}

// Remove stops counting a pod and returns the node on which it counted.
func (c *Cluster) Remove(uid types.UID) (node string, ok bool) {
	p := c.pods[uid]
	if p == nil {
		return "", false
	}
	n := p.where
	c.count(p, n, -1)
	for _, ct := range p.anti {
		ct.owned--
	}
	delete(c.pods, uid)
	last := len(n.pods) - 1
	n.pods[last].slot = p.slot
	n.pods[p.slot] = n.pods[last]
	n.pods[last] = nil
	n.pods = n.pods[:last]
	p.where = nil
	for _, w := range p.wants {
		n.used[w.id] -= w.n
	}
	for r := range n.load {
		n.load[r] -= p.weight[r]
		n.sinceThen[r] = max(0, n.sinceThen[r]-p.weight[r])
	}
	for _, hp := range p.ports {
		if n.ports[hp]--; n.ports[hp] == 0 {
			delete(n.ports, hp)
		}
	}
	c.touch(n)
	c.drop(n)
	return n.name, true
}

// Where returns the node on which a pod counts; "" if none.
func (c *Cluster) Where(uid types.UID) string {
	if p := c.pods[uid]; p != nil {
		return p.where.name
	}
	return ""
}

// Refresh takes the newest state of a pod that already counts on its node. It returns false if something changed that
// the plan depends on; the caller must then call Place again.
func (c *Cluster) Refresh(obj *corev1.Pod) bool {
	p := c.pods[obj.UID]
	if p == nil || p.where.name != obj.Spec.NodeName || p.Obj.Generation != obj.Generation ||
		(p.Obj.DeletionTimestamp == nil) != (obj.DeletionTimestamp == nil) || !maps.Equal(p.Obj.Labels, obj.Labels) {
		return false
	}
	p.Obj = obj
	return true
}

// Nodes returns the number of known nodes.
func (c *Cluster) Nodes() int { return c.known }

// touch records in the log that a node changed, for the classes.
func (c *Cluster) touch(n *node) {
	if len(c.changes) >= 2*len(c.nodes)+1024 { // classes that are further behind are rebuilt
		half := len(c.changes) / 2
		c.changes = append(c.changes[:0], c.changes[half:]...)
		c.first += half
	}
	c.changes = append(c.changes, n.index)
}
