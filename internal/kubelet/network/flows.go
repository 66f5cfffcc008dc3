package network

import (
	"net"
	"net/netip"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// flows cuts connections that the kernel tracks and that would go on to where nobody is. TCP notices by
// itself; a sender of datagrams would not, and its flow would live as long as it sends. Reading the
// kernel's table costs the same for one as for many, so those who ask meanwhile are served together.
type flows struct {
	cut func(f *flowFilter) error

	mu   sync.Mutex
	next *flowFilter // who waits while another reading is under way
	busy bool
}

// flowFilter is which UDP flows are to go, and the end of its reading.
type flowFilter struct {
	pods  map[netip.Addr]bool
	ports map[uint16]bool
	done  chan struct{}
	err   error
}

// MatchConntrackFlow implements netlink.CustomConntrackFilter.
func (f *flowFilter) MatchConntrackFlow(flow *netlink.ConntrackFlow) bool {
	if flow.Forward.Protocol != unix.IPPROTO_UDP {
		return false
	}
	is := func(ip net.IP) bool {
		a, ok := netip.AddrFromSlice(ip)
		return ok && f.pods[a.Unmap()]
	}
	return is(flow.Forward.SrcIP) || is(flow.Forward.DstIP) || is(flow.Reverse.SrcIP) || f.ports[flow.Forward.DstPort]
}

// end ends the UDP flows of a pod, and those to ports of the host; when it returns they are gone.
func (f *flows) end(pod netip.Addr, ports ...uint16) error {
	f.mu.Lock()
	if f.next == nil {
		f.next = &flowFilter{pods: map[netip.Addr]bool{}, ports: map[uint16]bool{}, done: make(chan struct{})}
	}
	mine := f.next
	if pod.IsValid() {
		mine.pods[pod] = true
	}
	for _, p := range ports {
		mine.ports[p] = true
	}
	if f.busy { // whoever reads takes this along next
		f.mu.Unlock()
		<-mine.done
		return mine.err
	}
	f.busy = true
	for f.next != nil {
		batch := f.next
		f.next = nil
		f.mu.Unlock()
		batch.err = f.cut(batch)
		close(batch.done)
		f.mu.Lock()
	}
	f.busy = false
	f.mu.Unlock()
	return mine.err
}

func cutFlows(h *netlink.Handle) func(f *flowFilter) error {
	return func(f *flowFilter) error {
		_, err := h.ConntrackDeleteFilters(netlink.ConntrackTable, unix.AF_INET, f)
		return err
	}
}
