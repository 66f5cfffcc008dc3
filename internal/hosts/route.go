package hosts

import (
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// NextHop is the address by which the host's packets to a range go, and the kind of link that they leave by: veth is the
// host's own. Invalid: no route has that range, or it has none.
func (h *Host) NextHop(to netip.Prefix) (by netip.Addr, link string) {
	dst := &net.IPNet{IP: to.Addr().AsSlice(), Mask: net.CIDRMask(to.Bits(), 32)}
	h.ns.do(func() error { //nolint:errcheck // what cannot be read is no route
		routes, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Dst: dst}, netlink.RT_FILTER_DST)
		if err == nil && len(routes) > 0 {
			by, _ = netip.AddrFromSlice(routes[0].Gw.To4())
			if l, err := netlink.LinkByIndex(routes[0].LinkIndex); err == nil {
				link = l.Type()
			}
		}
		return nil
	})
	return by, link
}
