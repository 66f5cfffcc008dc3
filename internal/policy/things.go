package policy

import (
	"net/netip"

	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/nft"
	"minik8s/internal/policy/plan"
)

// things are the sets and chains that the table has, each for as long as something holds it: an address holds the chain of
// its group, that one the chains of its policies and the frame, and those the sets in which they look.
type things struct {
	links  string
	ledger *ledger
	state  *state
	uses   map[string]int      // by how many each is held
	holds  map[string][]string // what each holds
	idle   []string            // that were let go, and perhaps held again since
	chains map[string]bool     // which of them are chains

	peers map[string]plan.Peers // the sets of peers, by name
	ports map[string]plan.Port  // the sets of named ports
	has   map[string]map[netip.Addr][]byte
}

func newThings(links string, s *state) *things {
	return &things{links: links, ledger: newLedger(), state: s, uses: map[string]int{}, holds: map[string][]string{}, chains: map[string]bool{},
		peers: map[string]plan.Peers{}, ports: map[string]plan.Port{}, has: map[string]map[netip.Addr][]byte{}}
}

// hold says that one more needs a thing, which make makes unless it is there. make returns what that holds itself.
func (t *things) hold(name string, make func() []string) {
	if t.uses[name]++; t.uses[name] == 1 && t.holds[name] == nil {
		t.holds[name] = append([]string{}, make()...)
	}
}

// letGo says that one less needs a thing.
func (t *things) letGo(name string) {
	if t.uses[name]--; t.uses[name] == 0 {
		t.idle = append(t.idle, name)
	}
}

// release removes what nobody holds any more.
func (t *things) release() {
	for len(t.idle) > 0 {
		name := t.idle[0]
		if t.idle = t.idle[1:]; t.uses[name] > 0 || t.holds[name] == nil {
			continue
		}
		held := t.holds[name]
		delete(t.holds, name)
		delete(t.uses, name)
		t.remove(name)
		for _, h := range held {
			t.letGo(h)
		}
	}
}

// theFrame is the name by which the frame is held.
const theFrame = "frame"

func (t *things) remove(name string) {
	switch {
	case name == theFrame:
		sets, chains := frame(t.links)
		for _, c := range chains {
			t.ledger.takeChain(c.Name)
		}
		for _, s := range sets {
			t.ledger.takeSet(s.Name)
		}
	case t.chains[name]:
		delete(t.chains, name)
		t.ledger.takeChain(name)
	default:
		delete(t.peers, name)
		delete(t.ports, name)
		delete(t.has, name)
		t.ledger.takeSet(name)
	}
}

func (t *things) holdFrame() []string {
	t.hold(theFrame, func() []string {
		sets, chains := frame(t.links)
		for _, s := range sets {
			t.ledger.putSet(s)
		}
		for _, c := range chains {
			t.ledger.putChain(c)
		}
		return nil
	})
	return []string{theFrame}
}

func (t *things) putChain(c nft.Chain) {
	t.chains[c.Name] = true
	t.ledger.putChain(c)
}

// holdGroup holds the chain for pods that are selected by these policies.
func (t *things) holdGroup(d plan.Direction, name string, policies []types.NamespacedName) {
	t.hold(name, func() []string {
		held := t.holdFrame()
		var chains []string
		for _, p := range policies {
			chain := policyChain(d, p)
			chains = append(chains, chain)
			t.hold(chain, func() []string {
				rules := *t.state.policies[p].Rules[d]
				sets := t.holdSets(rules)
				t.putChain(nft.Chain{Name: chain, Rules: policyRules(d, rules)})
				return sets
			})
		}
		t.putChain(nft.Chain{Name: name, Rules: groupRules(chains)})
		return append(held, chains...)
	})
}

// rewrite puts a policy's rules in place of those that its chain has, if it has one.
func (t *things) rewrite(d plan.Direction, p types.NamespacedName, rules []plan.Rule) {
	chain := policyChain(d, p)
	if t.holds[chain] == nil {
		return
	}
	before := t.holds[chain]
	t.holds[chain] = append([]string{}, t.holdSets(rules)...)
	t.putChain(nft.Chain{Name: chain, Rules: policyRules(d, rules)})
	for _, h := range before {
		t.letGo(h)
	}
}

// holdSets holds the sets in which rules look.
func (t *things) holdSets(rules []plan.Rule) (names []string) {
	add := func(name string, make func()) {
		names = append(names, name)
		t.hold(name, func() []string { make(); return nil })
	}
	for _, r := range rules {
		for _, p := range r.Peers {
			name := peersSet(p)
			add(name, func() { t.peers[name] = p; t.begin(addressSet(name)) })
		}
		if len(r.Blocks) > 0 {
			name := blockSet(r.Blocks)
			add(name, func() {
				t.ledger.putSet(nft.Set{Name: name, Key: []nft.Type{nft.Address}, Ranges: true})
				for _, e := range blockElements(name, r.Blocks) {
					t.ledger.put(e)
				}
			})
		}
		for _, p := range r.Ports {
			if p.Name == "" {
				continue
			}
			name := portSet(p)
			add(name, func() {
				t.ports[name] = p
				t.begin(nft.Set{Name: name, Key: []nft.Type{nft.Address, nft.Protocol, nft.Port}})
			})
		}
	}
	return names
}

// begin makes a set that follows the pods.
func (t *things) begin(s nft.Set) {
	t.ledger.putSet(s)
	t.has[s.Name] = map[netip.Addr][]byte{}
	for a := range t.state.claims {
		t.member(s.Name, a)
	}
}

// follow brings the sets that follow the pods up to date, as to some addresses.
func (t *things) follow(touched map[netip.Addr]bool) {
	for name := range t.has {
		for a := range touched {
			t.member(name, a)
		}
	}
}

// member brings a set up to date, as to one address.
func (t *things) member(set string, a netip.Addr) {
	want, has := t.elementOf(set, a), t.has[set][a]
	if string(want) == string(has) {
		return
	}
	if has != nil {
		t.ledger.take(set, has)
		delete(t.has[set], a)
	}
	if want != nil {
		t.ledger.put(nft.Element{Set: set, Key: want})
		t.has[set][a] = want
	}
}

// elementOf is the key that a set has for an address; nil: none.
func (t *things) elementOf(set string, a netip.Addr) []byte {
	p := t.state.owner(a)
	if p == nil {
		return nil
	}
	if port, ok := t.ports[set]; ok {
		if n := p.Named(port.Protocol, port.Name); n != 0 {
			return endpointKey(a, port.Protocol, n)
		}
		return nil
	}
	if t.peers[set].Include(p.Namespace, t.state.in(p.Namespace).labels, p.Labels) {
		return keyOf(a)
	}
	return nil
}
