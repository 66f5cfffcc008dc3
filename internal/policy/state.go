package policy

import (
	"cmp"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/nft"
	"minik8s/internal/policy/plan"
)

// changes are what has come since the last one; nil: it is gone.
type changes struct {
	policies   map[types.NamespacedName]*plan.Policy
	pods       map[types.NamespacedName]*plan.Pod
	namespaces map[string]labels.Set
}

// state is what the cluster is like, as far as policies need it, and what the table should have for that. It is pure: a
// change gives the edit that brings the table from one state to the next. What a change costs grows with the number of
// policies or pods, not with their product.
type state struct {
	namespaces map[string]*namespace
	pods       map[types.NamespacedName]*plan.Pod
	claims     map[netip.Addr][]*plan.Pod // who says to have an address; the first has it
	policies   map[types.NamespacedName]*plan.Policy
	// selected are the policies that are about a pod of this node, by direction and in order.
	selected map[types.NamespacedName]*[2][]types.NamespacedName
	placed   map[netip.Addr][2]string // the group chains of an isolated address; empty: it is open in that direction
	*things
}

type namespace struct {
	labels   labels.Set
	pods     map[types.NamespacedName]bool
	here     map[types.NamespacedName]bool // those of this node
	policies map[types.NamespacedName]bool
}

func newState(links string) *state {
	s := &state{namespaces: map[string]*namespace{}, pods: map[types.NamespacedName]*plan.Pod{}, claims: map[netip.Addr][]*plan.Pod{},
		policies: map[types.NamespacedName]*plan.Policy{}, selected: map[types.NamespacedName]*[2][]types.NamespacedName{},
		placed: map[netip.Addr][2]string{}}
	s.things = newThings(links, s)
	return s
}

// in is a namespace, also one of which only pods or policies are known yet.
func (s *state) in(name string) *namespace {
	n := s.namespaces[name]
	if n == nil {
		n = &namespace{pods: map[types.NamespacedName]bool{}, here: map[types.NamespacedName]bool{}, policies: map[types.NamespacedName]bool{}}
		s.namespaces[name] = n
	}
	return n
}

// change takes changes in and returns the edit.
func (s *state) change(c changes) nft.Edit {
	touched := map[netip.Addr]bool{} // addresses of which something may have changed
	for name, l := range c.namespaces {
		n := s.in(name)
		n.labels = l
		for pod := range n.pods {
			s.touch(touched, s.pods[pod])
		}
	}
	for name, pod := range c.pods {
		s.touch(touched, s.pods[name])
		s.touch(touched, pod)
		s.setPod(name, pod)
	}
	for name, p := range c.policies {
		s.setPolicy(name, p, touched)
	}
	for name, pod := range c.pods {
		if pod != nil && pod.Here {
			s.selectAll(name, pod)
		}
	}
	s.follow(touched)
	for a := range touched {
		s.place(a)
	}
	s.release()
	for name, n := range s.namespaces {
		if n.labels == nil && len(n.pods)+len(n.policies) == 0 {
			delete(s.namespaces, name)
		}
	}
	return s.ledger.edit()
}

func (s *state) touch(touched map[netip.Addr]bool, p *plan.Pod) {
	if p != nil {
		for _, a := range p.Addresses {
			touched[a] = true
		}
	}
}

func (s *state) setPod(name types.NamespacedName, now *plan.Pod) {
	n := s.in(name.Namespace)
	if old := s.pods[name]; old != nil {
		for _, a := range old.Addresses {
			s.claims[a] = slices.DeleteFunc(s.claims[a], func(p *plan.Pod) bool { return p == old })
			if len(s.claims[a]) == 0 {
				delete(s.claims, a)
			}
		}
	}
	if now == nil {
		delete(s.pods, name)
		delete(n.pods, name)
	} else {
		s.pods[name] = now
		n.pods[name] = true
		for _, a := range now.Addresses {
			s.claims[a] = append(s.claims[a], now)
			slices.SortFunc(s.claims[a], func(p, q *plan.Pod) int {
				if p.Before(q) {
					return -1
				}
				return 1
			})
		}
	}
	if now != nil && now.Here {
		n.here[name] = true
	} else {
		delete(n.here, name)
		delete(s.selected, name)
	}
}

// owner is the pod that has an address; nil if none has it.
func (s *state) owner(a netip.Addr) *plan.Pod {
	if list := s.claims[a]; len(list) > 0 {
		return list[0]
	}
	return nil
}

// setPolicy puts a policy in place of another, and selects its pods.
func (s *state) setPolicy(name types.NamespacedName, now *plan.Policy, touched map[netip.Addr]bool) {
	n := s.in(name.Namespace)
	if now == nil {
		delete(s.policies, name)
		delete(n.policies, name)
	} else {
		s.policies[name] = now
		n.policies[name] = true
	}
	for pod := range n.here {
		of := s.selected[pod]
		if of == nil {
			continue // it is new, and will be asked about all policies
		}
		for _, d := range plan.Directions {
			i, is := slices.BinarySearchFunc(of[d], name, compare)
			should := now != nil && now.Rules[d] != nil && now.Selects(s.pods[pod].Labels)
			switch {
			case should && !is:
				of[d] = slices.Insert(of[d], i, name)
			case is && !should:
				of[d] = slices.Delete(of[d], i, i+1)
			default:
				continue
			}
			s.touch(touched, s.pods[pod])
		}
	}
	for _, d := range plan.Directions {
		if now != nil && now.Rules[d] != nil {
			s.rewrite(d, name, *now.Rules[d])
		}
	}
}

func compare(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// selectAll finds the policies of a pod of this node.
func (s *state) selectAll(name types.NamespacedName, pod *plan.Pod) {
	of := &[2][]types.NamespacedName{}
	for policy := range s.in(pod.Namespace).policies {
		p := s.policies[policy]
		if !p.Selects(pod.Labels) {
			continue
		}
		for _, d := range plan.Directions {
			if p.Rules[d] != nil {
				of[d] = append(of[d], policy)
			}
		}
	}
	for _, d := range plan.Directions {
		slices.SortFunc(of[d], compare)
	}
	s.selected[name] = of
}

// place leads an address to the chains of the policies of its pod, if that is one of this node's.
func (s *state) place(a netip.Addr) {
	var want [2]string
	var of *[2][]types.NamespacedName
	if p := s.owner(a); p != nil && p.Here {
		of = s.selected[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}]
	}
	was := s.placed[a]
	for _, d := range plan.Directions {
		if of != nil && len(of[d]) > 0 {
			want[d] = groupChain(d, of[d])
		}
		if want[d] == was[d] {
			continue
		}
		if want[d] == "" {
			s.ledger.take(podsOf(d), keyOf(a))
		} else {
			s.holdGroup(d, want[d], of[d])
			s.ledger.put(nft.Element{Set: podsOf(d), Key: keyOf(a), Goto: want[d]})
		}
		if was[d] != "" {
			s.letGo(was[d])
		}
	}
	if want == [2]string{} {
		delete(s.placed, a)
		if was != want {
			s.ledger.take(self, selfKey(a))
		}
		return
	}
	s.placed[a] = want
	s.ledger.put(nft.Element{Set: self, Key: selfKey(a)})
}

// table is our part of the table.
func (s *state) table(name string) nft.Table {
	t := nft.Table{Name: name, Guest: Prefix}
	s.ledger.fill(&t)
	return t
}

// isolates reports whether a policy has rules in the table: it is about a pod of this node.
func (s *state) isolates(name types.NamespacedName) bool {
	for _, d := range plan.Directions {
		if s.uses[policyChain(d, name)] > 0 {
			return true
		}
	}
	return false
}
