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

// Connections that the kernel tracks would go on to where nobody is, or to whoever gets the address next. TCP notices
// by itself; a sender of datagrams does not, and its flow lives as long as it sends. To look for them costs
// the kernel a walk through its whole table, 5 ms however empty, so it is done once for all pods that have gone
// in a while, off their way; until then their addresses are not given out again.

// flowsAfter is how long after a pod has gone its flows are ended.
const flowsAfter = 100 * time.Millisecond

// flows ends them.
type flows struct {
	cut func(netlink.CustomConntrackFilter) error

	walk sync.Mutex // one at a time

	mu    sync.Mutex
	timer *time.Timer // set while a walk is due
}

// flowFilter is which UDP flows are to go.
type flowFilter struct {
	dead  func(netip.Addr) bool
	ports []uint16 // of the host
}

// MatchConntrackFlow implements netlink.CustomConntrackFilter.
func (f flowFilter) MatchConntrackFlow(flow *netlink.ConntrackFlow) bool {
	if flow.Forward.Protocol != unix.IPPROTO_UDP {
		return false
	}
	dead := func(ip net.IP) bool {
		a, ok := netip.AddrFromSlice(ip)
		return ok && f.dead(a.Unmap())
	}
	return dead(flow.Forward.SrcIP) || dead(flow.Forward.DstIP) || dead(flow.Reverse.SrcIP) || slices.Contains(f.ports, flow.Forward.DstPort)
}

// endFlows ends the UDP flows of all addresses that no pod has, and those to ports of the host, and gives the
// addresses of pods that have gone free.
func (n *Network) endFlows(ports ...uint16) {
	n.flows.walk.Lock()
	defer n.flows.walk.Unlock()
	gone := n.pool.leaving()
	if err := n.flows.cut(flowFilter{n.pool.dead, ports}); err != nil {
		n.cfg.Log.Warn("flows of pods that are gone could not be ended", "error", err)
	}
	n.pool.free(gone)
}

// endFlowsSoon has endFlows called.
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

// stop calls off a walk that is due; the next start makes up for it.
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
