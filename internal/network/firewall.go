package network

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"minik8s/internal/nft"
)

// admitted is the pods' traffic that a filtering chain has to accept, by hook: everything forwarded from or to pods,
// everything from the host to pods, and, from pods to the host, replies, DNS, ping and the given TCP ports; from pods
// of peers, replies and ping; and the tunnel's packets, of which our own table drops those of strangers.
// Everything else on the host, such as its sshd, is left to the host's own filter.
func admitted(pods netip.Prefix, ports []uint16, a across) map[nft.Hook][]nft.Accept {
	input := []nft.Accept{{From: pods, Replies: true}, {From: pods, Protocol: "icmp"},
		{From: pods, Protocol: "udp", Port: 53}, {From: pods, Protocol: "tcp", Port: 53}}
	for _, p := range ports {
		input = append(input, nft.Accept{From: pods, Protocol: "tcp", Port: p})
	}
	output := []nft.Accept{{To: pods}}
	for _, r := range merged(a.ranges()) {
		input = append(input, nft.Accept{From: r, Replies: true}, nft.Accept{From: r, Protocol: "icmp"})
		output = append(output, nft.Accept{To: r})
	}
	if a.tunnel {
		wrapped := nft.Accept{Protocol: "udp", Port: a.port}
		input, output = append(input, wrapped), append(output, wrapped)
	}
	return map[nft.Hook][]nft.Accept{
		nft.Forward: {{From: pods}, {To: pods}},
		nft.Input:   input,
		nft.Output:  output,
	}
}

// ways are the links by which pods' traffic passes.
type ways struct {
	pods  netip.Prefix // the range of this node
	links string       // the prefix of the names of pods' links and of the tunnel
	exit  string       // the link of the default route; empty: none
	// remote is whether the pods of peers are reached by the exit, and not by the tunnel.
	remote bool
}

// opening is a chain of another table that needs rules of ours, or no longer does.
type opening struct {
	chain nft.BaseChain
	rules []nft.Accept // none: ours have to be removed
	where string       // the rule that stops the traffic without them
}

// openings decides which chains to change. For a chain that lets some of each kind of traffic through, partly names
// the rules that drop the rest: they are assumed to be intended. It is pure.
func openings(chains []nft.BaseChain, tag string, w ways, want map[nft.Hook][]nft.Accept) (change []opening, partly []string) {
	for _, c := range chains {
		var stop *nft.Effect
		var some []string
		for _, traffic := range want[c.Hook] {
			e := c.Effect(tag, traffic, func(l nft.Link) bool { return w.pass(c.Hook, traffic, l) })
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
func (w ways) pass(hook nft.Hook, traffic nft.Accept, l nft.Link) bool {
	if l.Name == "" || hook == nft.Input && l.Out || hook == nft.Output && !l.Out {
		return true
	}
	is := func(name string) bool {
		return l.Name == name || l.Prefix && strings.HasPrefix(name, l.Name) || name == w.links && strings.HasPrefix(l.Name, w.links)
	}
	local := traffic.From == w.pods || traffic.To == w.pods
	wrapped := !traffic.From.IsValid() && !traffic.To.IsValid()
	if wrapped || !local && w.remote {
		return w.exit != "" && is(w.exit) != l.Not
	}
	if l.Not {
		return !is(w.links) // it matches all pods' links
	}
	podsEnd := traffic.From.IsValid() != l.Out
	return is(w.links) || local && !podsEnd && hook == nft.Forward && w.exit != "" && is(w.exit)
}

// firewallClient opens a filter that only its own tool may change.
type firewallClient interface {
	// open accepts the pods' range; done is false if there is nothing to open for this client.
	open(pods netip.Prefix, want map[nft.Hook][]nft.Accept) (done bool, err error)
	// close undoes open.
	close(pods netip.Prefix, want map[nft.Hook][]nft.Accept) error
}

// openFirewalls makes the host's other filters accept pods' traffic. It returns whether it changed one, and what
// still stops traffic.
func (n *Network) openFirewalls() (changed bool, t Trouble, err error) {
	chains, err := n.nf.Others(tables)
	if err != nil {
		return false, t, err
	}
	pods := n.pool.current()
	want := admitted(pods, n.cfg.NodePorts, n.across)
	list, partly := openings(chains, n.TableName(), ways{pods, n.linkPrefix(), n.exitName(), n.cfg.Direct}, want)
	t.Partly = partly
	for _, o := range list {
		err := n.nf.Admit(o.chain, n.TableName(), o.rules)
		changed = changed || err == nil
		if err == nil || len(o.rules) == 0 {
			continue
		}
		if o.chain.Table == "firewalld" {
			// Newer versions of firewalld own their table, which then nothing else can change.
			if done, ferr := n.firewalld.open(pods, want); done && ferr == nil {
				continue
			} else if ferr != nil {
				err = ferr
			}
		}
		t.Stopped = append(t.Stopped, fmt.Sprintf("%s (an accepting rule could not be put before it: %v)", o.where, err))
	}
	if _, err := n.legacy.open(pods, want); err != nil {
		t.Stopped = append(t.Stopped, err.Error())
	}
	slices.Sort(t.Stopped)
	return changed, t, nil
}

// closeFirewalls removes our rules from the other filters.
func (n *Network) closeFirewalls() []error {
	chains, err := n.nf.Others(tables)
	errs := []error{err}
	firewalld := false
	for _, c := range chains {
		firewalld = firewalld || c.Table == "firewalld"
		if !c.Admitted(n.TableName(), nil, 0) {
			errs = append(errs, n.nf.Admit(c, n.TableName(), nil))
		}
	}
	pods := n.pool.current()
	if !pods.IsValid() {
		return errs
	}
	want := admitted(pods, n.cfg.NodePorts, n.across)
	if firewalld {
		errs = append(errs, n.firewalld.close(pods, want))
	}
	return append(errs, n.legacy.close(pods, want))
}

func (n *Network) exitName() string {
	if l := n.defaultLink(); l != nil {
		return l.Attrs().Name
	}
	return ""
}
