package network

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A UDP flow in the kernel's connection tracking outlives its pod: datagrams would still go to an address without a
// pod, or to the next pod that gets the address. TCP notices by itself; a sender of UDP does not, and its flow exists
// as long as it sends. To find such flows the kernel walks through its whole table, which takes 5 ms even if the
// table is empty. So it is done in the background, once for all pods removed within flowsAfter, and until then their
// addresses are not assigned again.

// flowsAfter is how long after a pod's removal its flows are ended.
const flowsAfter = 100 * time.Millisecond

// flows ends the UDP flows of removed pods.
type flows struct {
	cut func(netlink.CustomConntrackFilter) error

	walk sync.Mutex // one at a time

	mu    sync.Mutex
	timer *time.Timer // set while a walk is scheduled
}

// flowFilter selects the flows to end: UDP flows of dead addresses or to ports of the host, or masqueraded flows to
// some ranges.
type flowFilter struct {
	dead  func(netip.Addr) bool
	ports []uint16 // of the host
	to    []netip.Prefix
}

// MatchConntrackFlow implements netlink.CustomConntrackFilter.
func (f flowFilter) MatchConntrackFlow(flow *netlink.ConntrackFlow) bool {
	if len(f.to) > 0 { // whatever the protocol: a connection under way would wait for minutes
		dst, ok := netip.AddrFromSlice(flow.Forward.DstIP.To4())
		return ok && slices.ContainsFunc(f.to, func(p netip.Prefix) bool { return p.Contains(dst) }) && !flow.Reverse.DstIP.Equal(flow.Forward.SrcIP)
	}
	if flow.Forward.Protocol != unix.IPPROTO_UDP {
		return false
	}
	dead := func(ip net.IP) bool {
		a, ok := netip.AddrFromSlice(ip)
		return ok && f.dead(a.Unmap())
	}
	return dead(flow.Forward.SrcIP) || dead(flow.Forward.DstIP) || dead(flow.Reverse.SrcIP) || slices.Contains(f.ports, flow.Forward.DstPort)
}

// endFlows ends the UDP flows of all addresses that no pod has, and those to the given ports of the host. Then it
// frees the addresses of removed pods.
func (n *Network) endFlows(ports ...uint16) {
	n.flows.walk.Lock()
	defer n.flows.walk.Unlock()
	left := n.pool.Retired()
	if err := n.flows.cut(flowFilter{dead: n.pool.Unassigned, ports: ports}); err != nil {
		n.cfg.Log.Warn("flows of removed pods could not be ended", "error", err)
	}
	n.pool.Free(left)
}

// endFlowsTo ends, in the background, the flows to ranges of peers that have become known only now: what was sent
// there before left by the default route and was masqueraded, and would be for as long as somebody sends.
func (n *Network) endFlowsTo(ranges []netip.Prefix) {
	go func() {
		n.flows.walk.Lock()
		defer n.flows.walk.Unlock()
		if err := n.flows.cut(flowFilter{to: ranges}); err != nil {
			n.cfg.Log.Warn("flows from before a node joined could not be ended", "error", err)
		}
	}()
}

// endFlowsSoon calls endFlows after flowsAfter, once for all calls until then.
func (n *Network) endFlowsSoon() {
	f := &n.flows
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.timer == nil {
		f.timer = time.AfterFunc(flowsAfter, func() {
			f.mu.Lock()
			f.timer = nil
			f.mu.Unlock()
			n.endFlows()
		})
	}
}

// stop cancels a scheduled walk; Keep does it at the next start.
func (f *flows) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.timer != nil {
		f.timer.Stop()
	}
	f.walk.Lock()
	defer f.walk.Unlock()
	f.cut = func(netlink.CustomConntrackFilter) error { return nil }
}

func cutFlows(h *netlink.Handle) func(netlink.CustomConntrackFilter) error {
	return func(f netlink.CustomConntrackFilter) error {
		_, err := h.ConntrackDeleteFilters(netlink.ConntrackTable, unix.AF_INET, f)
		return err
	}
}
