package plan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/placement"
)

// topology maps nodes to their domains: the values of one label, numbered. The key "" makes each node its own domain.
type topology struct {
	key string
	ids map[string]int32
	of  []int32 // by node; -1: the node has no such label, or is not known
}

func (t *topology) set(n *node) {
	for int(n.index) >= len(t.of) {
		t.of = append(t.of, -1)
	}
	t.of[n.index] = -1
	if n.obj == nil {
		return
	}
	if t.key == "" {
		t.of[n.index] = n.index
		return
	}
	value, ok := n.obj.Labels[t.key]
	if !ok {
		return
	}
	id, ok := t.ids[value]
	if !ok {
		id = int32(len(t.ids))
		t.ids[value] = id
	}
	t.of[n.index] = id
}

// size returns the number of domain numbers in use.
func (t *topology) size() int {
	if t.key == "" {
		return len(t.of)
	}
	return len(t.ids)
}

func (c *Cluster) topology(key string) *topology {
	t := c.topologies[key]
	if t == nil {
		t = &topology{key: key, ids: map[string]int32{}}
		for _, n := range c.nodes {
			t.set(n)
		}
		c.topologies[key] = t
	}
	return t
}

// counter belongs to one term, whichever pods have it. It counts in each domain the pods that the term selects, and the
// pods that have the term as required anti-affinity.
type counter struct {
	key   string
	match []placement.PodSelector // a pod must match all of them
	topo  *topology
	// tracked: n is kept up to date. This starts when a pod first needs it.
	tracked bool
	n       []int32 // pods selected, by domain
	total   int64
	owners  []int32 // pods with this anti-affinity term, by domain
	owned   int     // number of pods, anywhere, that have this anti-affinity term
	used    uint64
	dead    bool // removed from the index; a pod that still needs it puts it back
}

func (ct *counter) chooses(c *Cluster, pod *corev1.Pod) bool {
	return placement.AllMatch(ct.match, pod, c.namespaces)
}

func bump(list *[]int32, domain, by int32) {
	for int(domain) >= len(*list) {
		*list = append(*list, 0)
	}
	(*list)[domain] += by
}

func count(list []int32, domain int32) int32 {
	if domain >= 0 && int(domain) < len(list) {
		return list[domain]
	}
	return 0
}

// indexKey is how a counter is found: a namespace and a label that every selected pod has, or no label.
type indexKey struct{ namespace, key, value string }

// maxCounters is how many counters are kept before those without owners or recent use are removed.
const maxCounters = 1024

// counter returns the counter for a key, and makes it if there is none.
func (c *Cluster) counter(key []byte, topo string, match func() []placement.PodSelector) *counter {
	if ct := c.counters[string(key)]; ct != nil {
		return ct
	}
	ct := &counter{key: string(key), match: match(), topo: c.topology(topo)}
	c.enter(ct)
	return ct
}

// live returns ct, or the counter that replaced it while no pod needed it.
func (c *Cluster) live(ct *counter) *counter {
	if !ct.dead {
		return ct
	}
	if now := c.counters[ct.key]; now != nil {
		return now
	}
	*ct = counter{key: ct.key, match: ct.match, topo: ct.topo}
	c.enter(ct)
	return ct
}

func (c *Cluster) enter(ct *counter) {
	if len(c.counters) >= c.limit {
		c.sweep()
	}
	c.clock++
	ct.used = c.clock
	c.counters[ct.key] = ct
	for i := range ct.match {
		if ct.match[i].NamespaceLabels == nil { // indexing by one of the selectors is enough, since all must match
			for _, k := range c.indexKeys(&ct.match[i]) {
				c.index[k] = append(c.index[k], ct)
			}
			return
		}
	}
	c.wide = append(c.wide, ct)
}

func (c *Cluster) indexKeys(s *placement.PodSelector) []indexKey {
	key, value, _ := s.SharedLabel()
	out := make([]indexKey, 0, len(s.Namespaces))
	for _, ns := range s.Namespaces {
		if k := (indexKey{ns, key, value}); !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out
}

// sweep removes the counters that no pod owns and that have not been used lately.
func (c *Cluster) sweep() {
	gone := func(ct *counter) bool { return ct.dead }
	for key, ct := range c.counters {
		if ct.used+maxCounters/2 > c.clock {
			continue
		}
		if ct.owned > 0 {
			ct.tracked, ct.n, ct.total = false, nil, 0
			continue
		}
		ct.dead = true
		delete(c.counters, key)
	}
	for k, list := range c.index {
		if list = slices.DeleteFunc(list, gone); len(list) == 0 {
			delete(c.index, k)
		} else {
			c.index[k] = list
		}
	}
	c.wide = slices.DeleteFunc(c.wide, gone)
	c.limit = max(maxCounters, 2*len(c.counters))
}

// hits returns the counters that select a pod. The slice is valid until the next call.
func (c *Cluster) hits(pod *corev1.Pod) []*counter {
	out := c.found[:0]
	if len(c.counters) == 0 {
		return out
	}
	out = c.choosing(out, c.index[indexKey{namespace: pod.Namespace}], pod)
	for k, v := range pod.Labels {
		out = c.choosing(out, c.index[indexKey{pod.Namespace, k, v}], pod)
	}
	out = c.choosing(out, c.wide, pod)
	c.found = out
	return out
}

func (c *Cluster) choosing(out, list []*counter, pod *corev1.Pod) []*counter {
	for _, ct := range list {
		if ct.chooses(c, pod) {
			out = append(out, ct)
		}
	}
	return out
}

// count adds a pod to the counters (by 1) or removes it (by -1), in the present domains of its node.
func (c *Cluster) count(p *Pod, n *node, by int32) {
	for _, ct := range c.hits(p.Obj) {
		if !ct.tracked {
			continue
		}
		if domain := ct.topo.of[n.index]; domain >= 0 {
			bump(&ct.n, domain, by)
			ct.total += int64(by)
		}
	}
	for _, ct := range p.anti {
		if domain := ct.topo.of[n.index]; domain >= 0 {
			bump(&ct.owners, domain, by)
		}
	}
}

// track starts counting the pods that a counter selects.
func (c *Cluster) track(ct *counter) {
	c.clock++
	ct.used = c.clock
	if ct.tracked {
		return
	}
	ct.tracked, ct.n, ct.total = true, nil, 0
	for _, p := range c.pods {
		domain := ct.topo.of[p.where.index]
		if domain >= 0 && ct.chooses(c, p.Obj) {
			bump(&ct.n, domain, 1)
			ct.total++
		}
	}
}
