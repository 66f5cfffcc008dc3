package hostfilter

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"minik8s/internal/nft"
)

// Traffic is what the filters have to let through.
type Traffic struct {
	Pods  netip.Prefix   // the range of this node; invalid: it has no pods
	Ports []uint16       // TCP ports of the node that pods may reach
	Peers []netip.Prefix // the ranges of other nodes' pods
	// TunnelPort is the UDP port by which peers' packets come; 0: there is no tunnel.
	TunnelPort uint16
	Links      string // the prefix of the names of pods' links and of the tunnel
	Exit       string // the link of the default route; empty: none
	// Direct is whether the pods of peers are reached by the exit, and not by the tunnel.
	Direct bool
}

// admitted is the pods' traffic that a filtering chain has to accept, by hook: everything forwarded from or to pods,
// everything from the host to pods, and, from pods to the host, replies, DNS, ping and the given TCP ports; from pods
// of peers, replies and ping; and the tunnel's packets, of which our own table drops those of strangers.
// Everything else on the host, such as its sshd, is left to the host's own filter.
func (t Traffic) admitted() map[nft.Hook][]nft.Accept {
	var input, output, forward []nft.Accept
	if t.Pods.IsValid() {
		input = []nft.Accept{{From: t.Pods, Replies: true}, {From: t.Pods, Protocol: "icmp"},
			{From: t.Pods, Protocol: "udp", Port: 53}, {From: t.Pods, Protocol: "tcp", Port: 53}}
		for _, p := range t.Ports {
			input = append(input, nft.Accept{From: t.Pods, Protocol: "tcp", Port: p})
		}
		output = []nft.Accept{{To: t.Pods}}
		forward = []nft.Accept{{From: t.Pods}, {To: t.Pods}}
	}
	for _, r := range merged(t.Peers) {
		input = append(input, nft.Accept{From: r, Replies: true}, nft.Accept{From: r, Protocol: "icmp"})
		output = append(output, nft.Accept{To: r})
	}
	if t.TunnelPort != 0 {
		wrapped := nft.Accept{Protocol: "udp", Port: t.TunnelPort}
		input, output = append(input, wrapped), append(output, wrapped)
	}
	return map[nft.Hook][]nft.Accept{
		nft.Forward: forward,
		nft.Input:   input,
		nft.Output:  output,
	}
}

// merged is the smallest list of ranges for the same addresses, for filters whose every rule costs time.
func merged(list []netip.Prefix) []netip.Prefix {
	list = slices.SortedFunc(slices.Values(list), func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	var out []netip.Prefix
	for _, p := range list {
		for len(out) > 0 {
			last := out[len(out)-1]
			if last.Overlaps(p) {
				p = last
			} else if up, err := last.Addr().Prefix(last.Bits() - 1); err == nil && last.Bits() == p.Bits() && up.Contains(p.Addr()) {
				p = up
			} else {
				break
			}
			out = out[:len(out)-1]
		}
		out = append(out, p)
	}
	return out
}

// opening is a chain of another table that needs rules of ours, or no longer does.
type opening struct {
	chain nft.BaseChain
	rules []nft.Accept // none: ours have to be removed
	where string       // the rule that stops the traffic without them
}

// openings decides which chains to change. For a chain that lets some of each kind of traffic through, partly names
// the rules that drop the rest: they are assumed to be intended. It is pure.
func openings(chains []nft.BaseChain, tag string, t Traffic) (change []opening, partly []string) {
	want := t.admitted()
	for _, c := range chains {
		var stop *nft.Effect
		var some []string
		for _, traffic := range want[c.Hook] {
			e := c.Effect(tag, traffic, func(l nft.Link) bool { return t.pass(c.Hook, traffic, l) })
			if e.Stop != "" && (stop == nil || e.Index < stop.Index) {
				stop = &e
			}
			some = append(some, e.Partly...)
		}
		switch {
		case stop == nil:
			partly = append(partly, some...)
			if !c.Admitted(tag, nil, 0) {
				change = append(change, opening{chain: c})
			}
		case !c.Admitted(tag, want[c.Hook], stop.Index):
			change = append(change, opening{chain: c, rules: want[c.Hook], where: stop.Stop})
		}
	}
	slices.Sort(partly)
	return change, slices.Compact(partly)
}

// pass reports whether traffic passes a link that a rule matches. From a pod it comes in by the pod's link and
// leaves by another pod's or by that of the default route; to a pod it is the other way round. Rules about other
// links, such as the bridges of Docker or libvirt, do not concern pods.
func (t Traffic) pass(hook nft.Hook, traffic nft.Accept, l nft.Link) bool {
	if l.Name == "" || hook == nft.Input && l.Out || hook == nft.Output && !l.Out {
		return true
	}
	is := func(name string) bool {
		return l.Name == name || l.Prefix && strings.HasPrefix(name, l.Name) || name == t.Links && strings.HasPrefix(l.Name, t.Links)
	}
	local := t.Pods.IsValid() && (traffic.From == t.Pods || traffic.To == t.Pods)
	wrapped := !traffic.From.IsValid() && !traffic.To.IsValid()
	if wrapped || !local && t.Direct {
		return t.Exit != "" && is(t.Exit) != l.Not
	}
	if l.Not {
		return !is(t.Links) // it matches all pods' links
	}
	podsEnd := traffic.From.IsValid() != l.Out
	return is(t.Links) || local && !podsEnd && hook == nft.Forward && t.Exit != "" && is(t.Exit)
}
