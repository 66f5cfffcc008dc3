package plan

import "slices"

// dynamics is what a pod requires of other pods, and they of it, prepared for checking many nodes.
type dynamics struct {
	anti     []*counter // the pod's own anti-affinity
	existing []*counter // anti-affinity of existing pods that selects this pod
	affinity []*counter
	// alone: no pod matches the affinity, but this pod itself does, so it may be the first of its kind.
	alone  bool
	soft   []softTerm
	spread []spreadState
}

// spreadState is the present state of a topology spread constraint.
type spreadState struct {
	*spreadTerm
	counts []int32 // pods selected, by domain; -1: not a domain for this pod
	min    int32
}

// spreadCost is the cost of each pod in a domain for a ScheduleAnyway constraint, on the scale of the weights of
// preferred terms. A node outside all domains costs as much as many pods.
const (
	spreadCost  = 10
	outsideCost = 100 * spreadCost
)

// prepare fills c.dyn for a pod and returns it; nil if nothing depends on other pods. cl may be nil if the pod has no
// spread constraints.
func (c *Cluster) prepare(p *Pod, cl *class) *dynamics {
	d := &c.dyn
	d.existing, d.spread, d.alone = d.existing[:0], d.spread[:0], false
	for _, ct := range c.hits(p.Obj) {
		if ct.owned > 0 {
			d.existing = append(d.existing, ct)
		}
	}
	d.anti, d.affinity, d.soft = c.asked(p.anti), c.asked(p.affinity), p.soft
	for i := range d.soft {
		d.soft[i].ct = c.live(d.soft[i].ct)
		c.track(d.soft[i].ct)
	}
	if len(d.affinity) > 0 {
		d.alone = d.affinity[0].chooses(c, p.Obj) &&
			!slices.ContainsFunc(d.affinity, func(ct *counter) bool { return ct.total > 0 })
	}
	if len(p.spread) > 0 && cl != nil {
		c.prepareSpread(d, p, cl)
	}
	if len(d.existing)+len(d.anti)+len(d.affinity)+len(d.soft)+len(d.spread) == 0 {
		return nil
	}
	return d
}

// asked makes sure that the counters are tracked.
func (c *Cluster) asked(list []*counter) []*counter {
	for i := range list {
		list[i] = c.live(list[i])
		c.track(list[i])
	}
	return list
}

// prepareSpread counts the pods in each domain, over the nodes that are eligible for the pod.
func (c *Cluster) prepareSpread(d *dynamics, p *Pod, cl *class) {
	for i := range p.spread {
		t := &p.spread[i]
		t.ct = c.live(t.ct)
		c.track(t.ct)
		d.spread = append(d.spread, spreadState{spreadTerm: t, counts: c.domains(i, t.topo.size())})
	}
	for i, n := range c.nodes {
		if n.obj == nil || i >= len(cl.flags) {
			continue
		}
		complete := true // the node has a domain for every required constraint
		for j := range d.spread {
			if s := &d.spread[j]; s.Required && s.topo.of[i] < 0 {
				complete = false
			}
		}
		for j := range d.spread {
			s := &d.spread[j]
			domain := s.topo.of[i]
			if domain < 0 || !s.CountsNode(cl.flags[i]&okSelected != 0, cl.flags[i]&okTaints != 0, complete) {
				continue
			}
			s.counts[domain] = max(s.counts[domain], 0)
			if !s.none {
				s.counts[domain] += count(s.ct.n, int32(i))
			}
		}
	}
	for j := range d.spread {
		s := &d.spread[j]
		least, domains := int32(-1), int32(0)
		for _, n := range s.counts {
			if n >= 0 {
				domains++
				if least < 0 || n < least {
					least = n
				}
			}
		}
		if s.min = least; domains < s.MinDomains {
			s.min = 0
		}
	}
}

// domains returns memory for the counts of the i-th constraint, all set to -1.
func (c *Cluster) domains(i, size int) []int32 {
	for i >= len(c.counts) {
		c.counts = append(c.counts, nil)
	}
	list := slices.Grow(c.counts[i][:0], size)[:size]
	for j := range list {
		list[j] = -1
	}
	c.counts[i] = list
	return list
}

// The reasons of these filters, in Kubernetes' words.
const (
	whySpread      = "node(s) didn't match pod topology spread constraints"
	whySpreadLabel = "node(s) didn't match pod topology spread constraints (missing required label)"
	whyAffinity    = "node(s) didn't match pod affinity rules"
	whyAnti        = "node(s) didn't match pod anti-affinity rules"
	whyExisting    = "node(s) didn't satisfy existing pods anti-affinity rules"
)

// check returns the filter that refuses a node, and the reason; 0 if none does.
func (d *dynamics) check(i int32) (Cause, string) {
	for j := range d.spread {
		s := &d.spread[j]
		if !s.Required {
			continue
		}
		domain := s.topo.of[i]
		if domain < 0 {
			return BySpread, whySpreadLabel
		}
		have := int32(0)
		if int(domain) < len(s.counts) {
			have = max(0, s.counts[domain])
		}
		if have+s.self-s.min > s.MaxSkew {
			return BySpread, whySpread
		}
	}
	for _, ct := range d.affinity {
		domain := ct.topo.of[i]
		if domain < 0 || !d.alone && count(ct.n, domain) <= 0 {
			return ByAffinity, whyAffinity
		}
	}
	for _, ct := range d.anti {
		if count(ct.n, ct.topo.of[i]) > 0 {
			return ByAntiAffinity, whyAnti
		}
	}
	for _, ct := range d.existing {
		if count(ct.owners, ct.topo.of[i]) > 0 {
			return ByAntiAffinity, whyExisting
		}
	}
	return 0, ""
}

// wishful reports whether the pod may prefer some nodes to others because of the pods there.
func (d *dynamics) wishful() bool {
	return len(d.soft) > 0 || slices.ContainsFunc(d.spread, func(s spreadState) bool { return !s.Required })
}

// wish returns how much the pod prefers a node because of the pods there and in its domains.
func (d *dynamics) wish(i int32) (sum int64) {
	for j := range d.soft {
		if s := &d.soft[j]; s.ct.topo.of[i] >= 0 {
			sum += s.weight * int64(count(s.ct.n, s.ct.topo.of[i]))
		}
	}
	for j := range d.spread {
		s := &d.spread[j]
		if s.Required {
			continue
		}
		if domain := s.topo.of[i]; domain < 0 {
			sum -= outsideCost
		} else {
			sum -= spreadCost * int64(max(0, count(s.counts, domain)))
		}
	}
	return sum
}
