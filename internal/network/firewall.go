package network

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"minik8s/internal/nft"
)

// admitted is the pods' traffic that a filtering chain has to accept, by hook: all that is forwarded from or to pods,
// what the host sends them, and of what they send the host the answers, DNS, ping and the given TCP ports. The rest of
// the host, such as its sshd, is left to the host's own filter.
func admitted(pods netip.Prefix, ports []uint16) map[nft.Hook][]nft.Accept {
	input := []nft.Accept{{From: pods, Replies: true}, {From: pods, Protocol: "icmp"},
		{From: pods, Protocol: "udp", Port: 53}, {From: pods, Protocol: "tcp", Port: 53}}
	for _, p := range ports {
		input = append(input, nft.Accept{From: pods, Protocol: "tcp", Port: p})
	}
	return map[nft.Hook][]nft.Accept{
		nft.Forward: {{From: pods}, {To: pods}},
		nft.Input:   input,
		nft.Output:  {{To: pods}},
	}
}

// opening is a chain of somebody else's that needs rules of ours, or no longer does.
type opening struct {
	chain nft.BaseChain
	rules []nft.Accept // none: ours are to go
	where string       // what stands in the way without them
}

// openings says which chains are to be changed, and what stands in the way in those that are right. It is
// pure. links are how the names of pods' links begin, and exit is the link of the default route.
func openings(chains []nft.BaseChain, tag, links, exit string, want map[nft.Hook][]nft.Accept) []opening {
	var out []opening
	for _, c := range chains {
		matters := func(l nft.Link) bool { return mattersAt(c.Hook, l, links, exit) }
		stop := c.Stops(tag, matters)
		switch {
		case stop == nil && !c.Admitted(tag, nil, 0):
			out = append(out, opening{chain: c})
		case stop != nil && !c.Admitted(tag, want[c.Hook], stop.Index):
			out = append(out, opening{chain: c, rules: want[c.Hook], where: stop.Where})
		}
	}
	return out
}

// mattersAt says whether pods' traffic passes a link at a hook. Rules about other links, such as the
// bridges of Docker or libvirt, are none of ours.
func mattersAt(hook nft.Hook, l nft.Link, links, exit string) bool {
	if l.Name == "" || hook == nft.Input && l.Out || hook == nft.Output && !l.Out {
		return true
	}
	is := func(name string) bool {
		return l.Name == name || l.Prefix && strings.HasPrefix(name, l.Name) || name == links && strings.HasPrefix(l.Name, links)
	}
	ours := is(links) || hook == nft.Forward && exit != "" && is(exit)
	if l.Not {
		return !is(links) // it matches all pods' links
	}
	return ours
}

// firewallClient is what opens a filter whose rules nobody else may change.
type firewallClient interface {
	// open lets the pods' range through; done is false where this client has nothing to open.
	open(pods netip.Prefix, want map[nft.Hook][]nft.Accept) (done bool, err error)
	// close takes that back.
	close(pods netip.Prefix, want map[nft.Hook][]nft.Accept) error
}

// openFirewalls has the filters of others accept pods' traffic. It returns whether it changed one, and those that
// still stop it.
func (n *Network) openFirewalls() (changed bool, blocked []string, err error) {
	chains, err := n.nf.Others(tables)
	if err != nil {
		return false, nil, err
	}
	pods := n.pool.current()
	want := admitted(pods, n.cfg.NodePorts)
	for _, o := range openings(chains, n.TableName(), n.linkPrefix(), n.exitName(), want) {
		err := n.nf.Admit(o.chain, n.TableName(), o.rules)
		changed = changed || err == nil
		if err == nil || len(o.rules) == 0 {
			continue
		}
		if o.chain.Table == "firewalld" {
			// Newer ones own their table, and then it takes changes from nobody else.
			if done, ferr := n.firewalld.open(pods, want); done && ferr == nil {
				continue
			} else if ferr != nil {
				err = ferr
			}
		}
		blocked = append(blocked, fmt.Sprintf("%s (an accepting rule could not be put before it: %v)", o.where, err))
	}
	if _, err := n.legacy.open(pods, want); err != nil {
		blocked = append(blocked, err.Error())
	}
	slices.Sort(blocked)
	return changed, blocked, nil
}

// closeFirewalls takes our rules out of the filters of others.
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
	want := admitted(pods, n.cfg.NodePorts)
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
