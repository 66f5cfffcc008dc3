package proxy

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/nft"
	"minik8s/internal/proxy/plan"
)

// entry is a Service that the table has.
type entry struct {
	plan    plan.Service
	created time.Time // of two that want the same address and port the older one has it
}

// state is what the table should have. It is pure: a change gives the edit that brings the table from one state to the
// next.
type state struct {
	renderer
	skeleton nft.Table
	entries  map[types.NamespacedName]*entry
	claims   map[string][]types.NamespacedName // by key of called: who wants it; the first has it
	shares   map[string]int                    // by set and key: how many Services have a shared element
}

func newState(table string, r renderer) *state {
	return &state{renderer: r, skeleton: skeleton(table, r.links), entries: map[types.NamespacedName]*entry{},
		claims: map[string][]types.NamespacedName{}, shares: map[string]int{}}
}

// change puts Services in place of those with their names; nil: there is none any more. The edit is the difference.
func (s *state) change(updates map[types.NamespacedName]*entry) nft.Edit {
	touched := map[types.NamespacedName]bool{}
	touch := func(name types.NamespacedName, e *entry) {
		touched[name] = true
		s.eachKey(e, func(key string) {
			for _, rival := range s.claims[key] {
				touched[rival] = true
			}
		})
	}
	for name, e := range updates {
		touch(name, s.entries[name])
		touch(name, e)
		s.align(s.entries[name], e)
	}
	before := s.pieces(touched)
	for name := range updates {
		s.eachKey(s.entries[name], func(key string) {
			rest := slices.DeleteFunc(slices.Clone(s.claims[key]), func(n types.NamespacedName) bool { return n == name })
			if s.claims[key] = rest; len(rest) == 0 {
				delete(s.claims, key)
			}
		})
		delete(s.entries, name)
	}
	for name, e := range updates {
		if e == nil {
			continue
		}
		s.entries[name] = e
		s.eachKey(e, func(key string) {
			if !slices.Contains(s.claims[key], name) {
				s.claims[key] = slices.SortedFunc(slices.Values(append(s.claims[key], name)), s.older)
			}
		})
	}
	return s.difference(before, s.pieces(touched))
}

func (s *state) older(a, b types.NamespacedName) int {
	return cmp.Or(s.entries[a].created.Compare(s.entries[b].created), cmp.Compare(a.String(), b.String()))
}

func (s *state) eachKey(e *entry, f func(key string)) {
	if e == nil {
		return
	}
	for _, p := range e.plan.Ports {
		for _, k := range called(p) {
			f(string(k))
		}
	}
}

// align keeps endpoints in the places that they have, so that a change of one touches two elements at most.
func (s *state) align(old, now *entry) {
	if old == nil || now == nil {
		return
	}
	for i := range now.plan.Ports {
		p := &now.plan.Ports[i]
		for _, q := range old.plan.Ports {
			if q.Name == p.Name {
				p.Endpoints, p.Local = aligned(q.Endpoints, p.Endpoints), aligned(q.Local, p.Local)
			}
		}
	}
}

// aligned are the endpoints of now, those of old at their old places as far as there are that many places.
func aligned(old, now []netip.AddrPort) []netip.AddrPort {
	out := make([]netip.AddrPort, len(now))
	var left []netip.AddrPort
	for _, e := range now {
		if i := slices.Index(old, e); i >= 0 && i < len(out) {
			out[i] = e
		} else {
			left = append(left, e)
		}
	}
	for i := range out {
		if !out[i].IsValid() {
			out[i], left = left[0], left[1:]
		}
	}
	return out
}

// pieces are what some Services have in the table.
func (s *state) pieces(names map[types.NamespacedName]bool) (out []piece) {
	for name := range names {
		if e := s.entries[name]; e != nil {
			out = append(out, s.pieceOf(name, e))
		}
	}
	return out
}

func (s *state) pieceOf(name types.NamespacedName, e *entry) piece {
	return s.render(e.plan, func(key []byte) bool { c := s.claims[string(key)]; return len(c) > 0 && c[0] == name })
}

func (s *state) difference(before, after []piece) (out nft.Edit) {
	type where struct{ set, key string }
	old, oldSets, oldChains := map[where]nft.Element{}, map[string]nft.Set{}, map[string]nft.Chain{}
	counts := map[string]int{} // of shared elements, before
	shared := map[string]nft.Element{}
	count := func(e nft.Element, by int) {
		k := e.Set + "\x00" + string(e.Key)
		if _, ok := counts[k]; !ok {
			counts[k], shared[k] = s.shares[k], e
		}
		if s.shares[k] += by; s.shares[k] == 0 {
			delete(s.shares, k)
		}
	}
	for _, p := range before {
		for _, e := range p.elements {
			old[where{e.Set, string(e.Key)}] = e
		}
		for _, set := range p.sets {
			oldSets[set.Name] = set
		}
		for _, c := range p.chains {
			oldChains[c.Name] = c
		}
		for _, e := range p.shared {
			count(e, -1)
		}
	}
	for _, p := range after {
		for _, e := range p.elements {
			k := where{e.Set, string(e.Key)}
			was, ok := old[k]
			delete(old, k)
			if ok && was.Goto == e.Goto && string(was.Value) == string(e.Value) {
				continue
			}
			if ok {
				out.Removed = append(out.Removed, was)
			}
			out.Added = append(out.Added, e)
		}
		for _, set := range p.sets {
			if _, ok := oldSets[set.Name]; !ok {
				out.Sets = append(out.Sets, set)
			}
			delete(oldSets, set.Name)
		}
		for _, c := range p.chains {
			if was, ok := oldChains[c.Name]; !ok || text(was) != text(c) {
				out.Chains = append(out.Chains, c)
			}
			delete(oldChains, c.Name)
		}
		for _, e := range p.shared {
			count(e, +1)
		}
	}
	for _, e := range old {
		out.Removed = append(out.Removed, e)
	}
	for name := range oldChains {
		out.Gone = append(out.Gone, name)
	}
	for name := range oldSets {
		out.GoneSets = append(out.GoneSets, name)
	}
	for k, was := range counts {
		switch is := s.shares[k]; {
		case was == 0 && is > 0:
			out.Added = append(out.Added, shared[k])
		case was > 0 && is == 0:
			out.Removed = append(out.Removed, shared[k])
		}
	}
	return out
}

func text(c nft.Chain) string {
	var b strings.Builder
	for _, r := range c.Rules {
		b.WriteString(r.String() + "\n")
	}
	return b.String()
}

// table is the whole table.
func (s *state) table() nft.Table {
	t := s.skeleton
	t.Sets, t.Chains = slices.Clone(t.Sets), slices.Clone(t.Chains)
	index := map[string]int{}
	for i, set := range t.Sets {
		index[set.Name] = i
	}
	add := func(e nft.Element) { i := index[e.Set]; t.Sets[i].Elements = append(t.Sets[i].Elements, e) }
	for name, e := range s.entries {
		p := s.pieceOf(name, e)
		t.Chains = append(t.Chains, p.chains...)
		t.Sets = append(t.Sets, p.sets...)
		for _, el := range p.elements {
			add(el)
		}
	}
	for k := range s.shares {
		set, key, _ := strings.Cut(k, "\x00")
		add(nft.Element{Set: set, Key: []byte(key)})
	}
	return t
}

// flow is what a datagram is for: to is only its port if that is a node port.
type flow struct{ to netip.AddrPort }

// udp are the endpoints to which the flows of each UDP port may go.
func (s *state) udp() map[flow][]netip.AddrPort {
	out := map[flow][]netip.AddrPort{}
	for name, e := range s.entries {
		flowsOf(e, out, func(protocol byte, at netip.AddrPort) bool {
			return s.claims[string(padded(calledKey(protocol, at)))][0] == name
		})
	}
	return out
}
