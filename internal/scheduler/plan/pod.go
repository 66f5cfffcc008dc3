package plan

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/api/placement"
	"minik8s/internal/api/podspec"
)

// Pod is what the plan needs to know of a pod, computed once.
type Pod struct {
	// Obj is shared with all readers and must not be changed.
	Obj *corev1.Pod

	wants  []want // ordered by resource number
	weight [2]int64
	ports  []placement.Port
	pins   []string

	anti     []*counter // required anti-affinity
	affinity []*counter // required affinity, one per topology key: counts the pods that match all its terms
	soft     []softTerm
	spread   []spreadTerm

	where *node // the node on which it counts; nil: none
	slot  int   // index in where.pods
}

// softTerm is a preferred term. Anti-affinity has a negative weight.
type softTerm struct {
	ct     *counter
	weight int64
}

// spreadTerm is a topology spread constraint.
type spreadTerm struct {
	placement.SpreadRule
	ct   *counter // topology of the nodes
	topo *topology
	self int32 // how many the pod itself adds: 1 if the constraint selects it
	none bool  // selects no pods
}

// Pod computes a Pod. For a pod that already has a node, only what affects other pods is computed.
func (c *Cluster) Pod(obj *corev1.Pod) *Pod {
	spec := &obj.Spec
	p := &Pod{Obj: obj, ports: placement.HostPorts(spec)}
	sum := podspec.Requests(spec)
	for name, n := range sum {
		if n > 0 && name != corev1.ResourcePods {
			p.wants = append(p.wants, want{c.resources.id(name), n})
		}
	}
	slices.SortFunc(p.wants, func(a, b want) int { return a.id - b.id })
	p.weight = weight(spec, sum)
	apart := placement.RequiredAntiAffinity(spec)
	for i := range apart {
		p.anti = append(p.anti, c.term(obj, &apart[i]))
	}
	if spec.NodeName != "" {
		return p
	}
	p.pins = placement.Pins(spec)
	a := spec.Affinity
	if a != nil && a.PodAntiAffinity != nil {
		p.prefer(c, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution, -1)
	}
	if a != nil && a.PodAffinity != nil {
		p.affinity = c.allOf(obj, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		p.prefer(c, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution, 1)
	}
	for i := range spec.TopologySpreadConstraints {
		p.spread = append(p.spread, c.spreadTerm(obj, &spec.TopologySpreadConstraints[i]))
	}
	return p
}

func (p *Pod) prefer(c *Cluster, terms []corev1.WeightedPodAffinityTerm, sign int64) {
	for i := range terms {
		p.soft = append(p.soft, softTerm{c.term(p.Obj, &terms[i].PodAffinityTerm), sign * int64(terms[i].Weight)})
	}
}

// term returns the counter of one term.
func (c *Cluster) term(pod *corev1.Pod, t *corev1.PodAffinityTerm) *counter {
	c.buf = appendString(appendAffinityTerm(c.buf[:0], t, pod), t.TopologyKey)
	return c.counter(c.buf, t.TopologyKey, func() []placement.PodSelector { return []placement.PodSelector{placement.TermSelector(t, pod)} })
}

// allOf returns counters for terms that a pod must match all at once: one counter for each topology key.
func (c *Cluster) allOf(pod *corev1.Pod, terms []corev1.PodAffinityTerm) []*counter {
	if len(terms) == 1 {
		return []*counter{c.term(pod, &terms[0])}
	}
	var out []*counter
	for i := range terms {
		key := c.buf[:0]
		for j := range terms {
			key = append(appendAffinityTerm(key, &terms[j], pod), '&')
		}
		c.buf = appendString(key, terms[i].TopologyKey)
		ct := c.counter(c.buf, terms[i].TopologyKey, func() []placement.PodSelector {
			all := make([]placement.PodSelector, len(terms))
			for j := range terms {
				all[j] = placement.TermSelector(&terms[j], pod)
			}
			return all
		})
		if !slices.Contains(out, ct) {
			out = append(out, ct)
		}
	}
	return out
}

func (c *Cluster) spreadTerm(pod *corev1.Pod, t *corev1.TopologySpreadConstraint) spreadTerm {
	b := appendString(append(c.buf[:0], 's'), pod.Namespace)
	c.buf = appendKeys(appendSelector(b, t.LabelSelector), pod.Labels, t.MatchLabelKeys, nil)
	ct := c.counter(c.buf, "", func() []placement.PodSelector { return []placement.PodSelector{placement.SpreadSelector(t, pod)} })
	s := spreadTerm{SpreadRule: placement.SpreadRuleOf(t), ct: ct, topo: c.topology(t.TopologyKey), none: !placement.CountsPods(&ct.match[0])}
	if ct.chooses(c, pod) {
		s.self = 1
	}
	return s
}

// classKey writes everything of a pod that its score and the filters of one node use. Pods with equal keys share a
// class.
func (p *Pod) classKey(b []byte) []byte {
	spec := &p.Obj.Spec
	b = appendString(b[:0], spec.NodeName)
	for _, w := range p.wants {
		b = strconv.AppendInt(append(b, 'r'), int64(w.id), 10)
		b = strconv.AppendInt(append(b, '='), w.n, 10)
	}
	b = strconv.AppendInt(append(b, 'w'), p.weight[cpu], 10)
	b = strconv.AppendInt(append(b, ','), p.weight[memory], 10)
	for _, hp := range p.ports {
		b = appendString(appendString(append(b, 'p'), hp.IP), string(hp.Protocol))
		b = strconv.AppendInt(b, int64(hp.Port), 10)
	}
	b = appendMap(append(b, 's'), spec.NodeSelector)
	for i := range spec.Tolerations {
		t := &spec.Tolerations[i]
		b = appendString(append(b, 't'), t.Key)
		b = appendString(b, string(t.Operator))
		b = appendString(b, t.Value)
		b = appendString(b, string(t.Effect))
	}
	if a := spec.Affinity; a != nil && a.NodeAffinity != nil {
		if raw, err := a.NodeAffinity.Marshal(); err == nil {
			b = append(append(b, 'a'), raw...)
		}
	}
	return b
}
