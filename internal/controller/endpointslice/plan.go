package endpointslice

import (
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

// maxEndpoints is how many endpoints a slice has at most.
const maxEndpoints = 100

// plan is what to write so that the slices are as wanted. What is in it is new: it shares no struct that is changed.
type plan struct {
	create, update, remove []*discoveryv1.EndpointSlice
}

// decide returns what makes the slices that there are name all wanted endpoints. like is a slice without endpoints and ports
// that has the labels and so on that each is to have. Endpoints stay where they are, new ones go where something is
// written anyway, then into one slice with room for all of them, then into new slices: so one changed pod is one write,
// at the price of slices that are not full. With keep one empty slice says that there are no endpoints.
func decide(groups []group, have []*discoveryv1.EndpointSlice, like *discoveryv1.EndpointSlice, keep bool) plan {
	byPorts := map[string][]*discoveryv1.EndpointSlice{}
	for _, s := range have {
		key := portsKey(s.AddressType, s.Ports)
		byPorts[key] = append(byPorts[key], s)
	}
	var p plan
	for _, g := range groups {
		key := g.key()
		p.fill(g, byPorts[key], like)
		delete(byPorts, key)
	}
	for _, s := range have { // in their order
		if slices.Contains(byPorts[portsKey(s.AddressType, s.Ports)], s) {
			p.remove = append(p.remove, s)
		}
	}
	if len(groups) == 0 && keep {
		p.keepEmpty(like)
	}
	p.recycle()
	return p
}

// draft is a slice that may be written.
type draft struct {
	old     *discoveryv1.EndpointSlice // nil: a new one
	left    []discoveryv1.Endpoint
	changed bool
}

// fill plans the slices of one group.
func (p *plan) fill(g group, have []*discoveryv1.EndpointSlice, like *discoveryv1.EndpointSlice) {
	missing := map[string]*discoveryv1.Endpoint{}
	for i := range g.endpoints {
		missing[identity(&g.endpoints[i])] = &g.endpoints[i]
	}
	var drafts []*draft
	for _, s := range have {
		d := &draft{old: s, changed: !dressed(s, like)}
		for i := range s.Endpoints {
			id := identity(&s.Endpoints[i])
			e := missing[id]
			if e == nil || len(d.left) == maxEndpoints {
				d.changed = true
				continue
			}
			delete(missing, id)
			d.changed = d.changed || !apiequality.Semantic.DeepEqual(*e, s.Endpoints[i])
			d.left = append(d.left, *e)
		}
		drafts = append(drafts, d)
	}
	var rest []discoveryv1.Endpoint
	for i := range g.endpoints {
		if missing[identity(&g.endpoints[i])] == &g.endpoints[i] {
			rest = append(rest, g.endpoints[i])
		}
	}
	for _, d := range drafts { // what is written anyway, unless it would go
		if d.changed && len(d.left) > 0 {
			rest = d.take(rest)
		}
	}
	for _, d := range drafts { // then what would go
		if d.changed {
			rest = d.take(rest)
		}
	}
	if len(rest) > 0 {
		if d := snuggest(drafts, len(rest)%maxEndpoints); d != nil {
			n := len(rest) % maxEndpoints
			d.take(rest[:n])
			rest = rest[n:]
		}
	}
	for len(rest) > 0 {
		d := &draft{}
		rest = d.take(rest)
		drafts = append(drafts, d)
	}
	for _, d := range drafts {
		switch {
		case len(d.left) == 0:
			p.remove = append(p.remove, d.old)
		case d.old == nil:
			p.create = append(p.create, slice(like, g, d.left))
		case d.changed:
			p.update = append(p.update, over(d.old, slice(like, g, d.left)))
		}
	}
}

// take adds as many endpoints as there is room for and returns the others.
func (d *draft) take(rest []discoveryv1.Endpoint) []discoveryv1.Endpoint {
	n := min(len(rest), maxEndpoints-len(d.left))
	if n > 0 {
		d.left, d.changed = append(d.left, rest[:n]...), true
	}
	return rest[n:]
}

// snuggest returns the fullest draft that has room for n more; nil if there is none, or nothing to put there.
func snuggest(drafts []*draft, n int) *draft {
	var best *draft
	for _, d := range drafts {
		if n > 0 && len(d.left)+n <= maxEndpoints && (best == nil || len(d.left) > len(best.left)) {
			best = d
		}
	}
	return best
}

// keepEmpty leaves one slice without endpoints, of those that would go, or makes it.
func (p *plan) keepEmpty(like *discoveryv1.EndpointSlice) {
	empty := slice(like, group{family: like.AddressType}, nil)
	if len(p.remove) == 0 {
		p.create = append(p.create, empty)
		return
	}
	for i, s := range p.remove {
		if len(s.Endpoints) == 0 && len(s.Ports) == 0 && dressed(s, like) {
			p.remove = slices.Delete(p.remove, i, i+1)
			return
		}
	}
	p.create = append(p.create, empty) // recycle makes it an update
}

// recycle writes over slices that would be deleted instead of creating others.
func (p *plan) recycle() {
	for i := 0; i < len(p.create); {
		at := slices.IndexFunc(p.remove, func(s *discoveryv1.EndpointSlice) bool { return s.AddressType == p.create[i].AddressType })
		if at < 0 {
			i++
			continue
		}
		p.update = append(p.update, over(p.remove[at], p.create[i]))
		p.remove = slices.Delete(p.remove, at, at+1)
		p.create = slices.Delete(p.create, i, i+1)
	}
}

// slice is a new slice.
func slice(like *discoveryv1.EndpointSlice, g group, endpoints []discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	s := like.DeepCopy()
	s.AddressType, s.Ports, s.Endpoints = g.family, g.ports, endpoints
	if s.Endpoints == nil {
		s.Endpoints = []discoveryv1.Endpoint{}
	}
	return s
}

// over is old with what next has, for an update.
func over(old, next *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	s := old.DeepCopy()
	s.Labels, s.OwnerReferences, s.Ports, s.Endpoints = next.Labels, next.OwnerReferences, next.Ports, next.Endpoints
	if next.Annotations != nil {
		s.Annotations = next.Annotations
	}
	return s
}

// dressed reports whether a slice has the labels and so on that it is to have.
func dressed(s, like *discoveryv1.EndpointSlice) bool {
	return apiequality.Semantic.DeepEqual(s.Labels, like.Labels) && apiequality.Semantic.DeepEqual(s.OwnerReferences, like.OwnerReferences) &&
		(like.Annotations == nil || apiequality.Semantic.DeepEqual(s.Annotations, like.Annotations))
}
