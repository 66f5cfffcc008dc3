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

// A flow that the kernel tracks outlives its pod: datagrams would go on to an address without a pod, or to the next
// pod that gets the address. TCP notices by itself; a sender of UDP does not, and its flow lives as long as it
// sends. Finding such flows costs the kernel a walk through its whole table, 5 ms however empty. So it is done in
// the background, once for all pods removed in a while, and until then their addresses are not given out again.

// flowsAfter is how long after a pod's removal its flows are ended.
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

// endFlows ends the UDP flows of all addresses that no pod has, and those to the given ports of the host, and then
// frees the addresses of removed pods.
func (n *Network) endFlows(ports ...uint16) {
	n.flows.walk.Lock()
	defer n.flows.walk.Unlock()
	left := n.pool.leaving()
	if err := n.flows.cut(flowFilter{n.pool.dead, ports}); err != nil {
		n.cfg.Log.Warn("flows of removed pods could not be ended", "error", err)
	}
	n.pool.free(left)
}

// endFlowsSoon has endFlows called after flowsAfter, once however often it is asked for until then.
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

// stop cancels a walk that is due; Keep makes up for it at the next start.
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
