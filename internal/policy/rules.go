package policy

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/nft"
	"minik8s/internal/policy/plan"
)

// Prefix is what the names of all that is ours in the table of Services begin with.
const Prefix = "policy-"

// priorities of the base chains: a packet from one pod of this node to another passes egress, then ingress.
var priorities = [...]int{plan.Egress: 10, plan.Ingress: 20}

// names that do not depend on a policy.
const (
	self = Prefix + "self" // (address, address) of isolated pods, which may call themselves
	deny = Prefix + "deny" // the chain in which ends what no policy lets through
)

func baseOf(d plan.Direction) string { return Prefix + d.String() }           // the base chain
func podsOf(d plan.Direction) string { return Prefix + d.String() + "-pods" } // address to group chain

// policyChain is the name of the chain of a policy's rules.
func policyChain(d plan.Direction, of types.NamespacedName) string {
	return clipped(Prefix + d.String() + "-" + of.String())
}

// groupChain is the name of the chain of pods that are selected by these policies, which are in order.
func groupChain(d plan.Direction, policies []types.NamespacedName) string {
	var all strings.Builder
	for _, p := range policies {
		all.WriteString(p.String() + "\n")
	}
	return Prefix + d.String() + "-group-" + hash(all.String())
}

func peersSet(p plan.Peers) string   { return Prefix + "peers-" + hash(p.Key()) }
func blockSet(r plan.Ranges) string  { return Prefix + "block-" + hash(r.String()) }
func portSet(p plan.Port) string     { return fmt.Sprintf("%sport-%d-%s", Prefix, p.Protocol, p.Name) }
func hash(text string) string        { return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:16] }
func keyOf(a netip.Addr) []byte      { b := a.As4(); return b[:] }
func selfKey(a netip.Addr) []byte    { return append(keyOf(a), keyOf(a)...) }
func addressSet(name string) nft.Set { return nft.Set{Name: name, Key: []nft.Type{nft.Address}} }

// longest is the length of the longest name; the kernel takes 255 bytes.
const longest = 200

func clipped(name string) string {
	if len(name) <= longest {
		return name
	}
	return name[:longest-17] + "-" + hash(name)
}

// endpointKey is the key of a pod's port in a set of named ports.
func endpointKey(a netip.Addr, protocol byte, port uint16) []byte {
	return append(binary.BigEndian.AppendUint16(append(keyOf(a), protocol, 0, 0, 0), port), 0, 0)
}

// frame are the sets and chains that there are as long as any pod of this node is isolated. links is the prefix of the
// names of pods' links. TestRules shows it in the nft tool's syntax; README.md says why each rule is there.
func frame(links string) ([]nft.Set, []nft.Chain) {
	pods := func(d plan.Direction) nft.Set {
		return nft.Set{Name: podsOf(d), Key: []nft.Type{nft.Address}, Value: []nft.Type{nft.ToChain}}
	}
	base := func(d plan.Direction, rules ...nft.Rule) nft.Chain {
		return nft.Chain{Name: baseOf(d), Hook: nft.Forward, Priority: priorities[d], Rules: rules}
	}
	return []nft.Set{pods(plan.Egress), pods(plan.Ingress), {Name: self, Key: []nft.Type{nft.Address, nft.Address}}},
		[]nft.Chain{
			base(plan.Egress, nft.Rule{nft.InBy(links), nft.GotoBySource(podsOf(plan.Egress))}),
			base(plan.Ingress, nft.Rule{nft.OutByAny(links), nft.GotoByDestination(podsOf(plan.Ingress))}),
			{Name: deny, Rules: []nft.Rule{{nft.PairIn(self), nft.Allow()}, {nft.Drop()}}},
		}
}

// groupRules are the rules for pods that are selected by policies with these chains.
func groupRules(chains []string) []nft.Rule {
	rules := []nft.Rule{{nft.Reply(), nft.Allow()}, {nft.Related(), nft.Allow()}}
	for _, c := range chains {
		rules = append(rules, nft.Rule{nft.Jump(c)})
	}
	return append(rules, nft.Rule{nft.Goto(deny)})
}

// policyRules are a policy's rules for one direction.
func policyRules(d plan.Direction, list []plan.Rule) (out []nft.Rule) {
	who := nft.FromAny
	if d == plan.Egress {
		who = nft.ToAny
	}
	for _, r := range list {
		var peers []nft.Rule
		if r.Anyone {
			peers = []nft.Rule{{}}
		}
		for _, p := range r.Peers {
			peers = append(peers, nft.Rule{who(peersSet(p))})
		}
		if len(r.Blocks) > 0 {
			peers = append(peers, nft.Rule{who(blockSet(r.Blocks))})
		}
		for _, from := range peers {
			for _, port := range portMatches(r.Ports) {
				rule := append(from[:len(from):len(from)], port...)
				out = append(out, append(rule, nft.Allow()))
			}
		}
	}
	return out
}

func portMatches(list []plan.Port) (out []nft.Rule) {
	if len(list) == 0 {
		return []nft.Rule{{}}
	}
	for _, p := range list {
		switch {
		case p.Name != "":
			out = append(out, nft.Rule{nft.EndpointIn(portSet(p))})
		case p.First == 0:
			out = append(out, nft.Rule{nft.OfProtocol(p.Protocol)})
		default:
			out = append(out, nft.Rule{nft.OfProtocol(p.Protocol), nft.ToPorts(p.First, p.Last)})
		}
	}
	return out
}

// blockElements are the elements of a set of ranges.
func blockElements(set string, list plan.Ranges) (out []nft.Element) {
	for _, r := range list {
		out = append(out, nft.Element{Set: set, Key: binary.BigEndian.AppendUint32(nil, r.First)})
		if r.Last < math.MaxUint32 {
			out = append(out, nft.Element{Set: set, Key: binary.BigEndian.AppendUint32(nil, r.Last+1), End: true})
		}
	}
	return out
}
