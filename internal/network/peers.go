package network

import (
	"context"
	"fmt"
	"net/netip"

	"minik8s/internal/network/hostfilter"
	"minik8s/internal/network/overlay"
	"minik8s/internal/nft"
)

// SetPeers says which other nodes there are: all of them, because those that are not in the list lose their routes.
// Where two contradict each other, the earlier one wins. It may be called before the node's range is known, and before
// Setup; then it takes effect with Setup. On an error Keep tries again, as it does when something is lost later.
func (n *Network) SetPeers(ctx context.Context, list []overlay.Peer) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.overlay.SetPeers(list)
	if !n.ready {
		return nil
	}
	n.chooseAgain()
	if _, err := n.syncServed(); err != nil {
		n.poke()
		return err
	}
	if _, err := n.overlay.Sync(n.pool.Prefix()); err != nil {
		n.poke()
		return err
	}
	_, err := n.filters.Open(n.traffic())
	return err
}

// peersFilter is the Network as the overlay.Filter of its peers. n.mu is held.
type peersFilter struct{ n *Network }

// Fill implements overlay.Filter.
func (f peersFilter) Fill() (changed bool, err error) {
	n := f.n
	want := n.overlay.Elements()
	added, removed := differences(n.tabled, want)
	if len(added)+len(removed) == 0 {
		return false, nil
	}
	if len(removed) > 0 {
		err = n.nf.Change(n.TableName(), false, removed)
	}
	if err == nil && len(added) > 0 {
		err = n.nf.Change(n.TableName(), true, added)
	}
	if err != nil { // somebody may have changed the table
		return true, n.apply()
	}
	n.tabled = want
	return true, nil
}

// EndFlowsTo implements overlay.Filter.
func (f peersFilter) EndFlowsTo(ranges []netip.Prefix) { f.n.endFlowsTo(ranges) }

// differences are the elements of b that a lacks, and those of a that b lacks.
func differences(a, b []nft.Element) (added, removed []nft.Element) {
	id := func(e nft.Element) string { return fmt.Sprintf("%s %x %v", e.Set, e.Key, e.End) }
	lacks := func(list, from []nft.Element) (out []nft.Element) {
		have := map[string]bool{}
		for _, e := range list {
			have[id(e)] = true
		}
		for _, e := range from {
			if !have[id(e)] {
				out = append(out, e)
			}
		}
		return out
	}
	return lacks(a, b), lacks(b, a)
}

// traffic is what the host's other filters have to let through now.
func (n *Network) traffic() hostfilter.Traffic {
	t := hostfilter.Traffic{Peers: n.overlay.Ranges(), TunnelPort: n.overlay.TunnelPort(),
		Links: n.host.LinkPrefix(), Exit: n.host.DefaultName(), Direct: n.cfg.Direct}
	if !n.cfg.NoPods {
		t.Pods, t.Ports = n.pool.Prefix(), n.cfg.NodePorts
	}
	return t
}
