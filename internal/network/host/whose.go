package host

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/vishvananda/netlink"
)

// Whose says whose an address is, in words, as far as this host knows its surroundings: its own on another link than lo, a
// gateway of its routes, or a machine that it has spoken with. Empty: nobody's that it knows.
func (h *Host) Whose(a netip.Addr) (string, error) {
	links, err := Dump(h.LinkList)
	if err != nil {
		return "", fmt.Errorf("network: links: %w", err)
	}
	names := map[int]string{}
	for _, l := range links {
		names[l.Attrs().Index] = l.Attrs().Name
	}
	addrs, err := Dump(func() ([]netlink.Addr, error) { return h.AddrList(nil, netlink.FAMILY_V4) })
	if err != nil {
		return "", fmt.Errorf("network: addresses: %w", err)
	}
	for _, own := range addrs {
		if own.IP.Equal(a.AsSlice()) && names[own.LinkIndex] != "lo" {
			return "this machine's own on " + names[own.LinkIndex], nil
		}
	}
	routes, err := Dump(func() ([]netlink.Route, error) { return h.RouteList(nil, netlink.FAMILY_V4) })
	if err != nil {
		return "", fmt.Errorf("network: routes: %w", err)
	}
	for _, r := range routes {
		by := r.Gw.Equal(a.AsSlice())
		for _, hop := range r.MultiPath {
			by = by || hop.Gw.Equal(a.AsSlice())
		}
		if by {
			return "the gateway of this machine's route to " + destination(r), nil
		}
	}
	known, err := Dump(func() ([]netlink.Neigh, error) { return h.NeighList(0, netlink.FAMILY_V4) })
	if err != nil {
		return "", fmt.Errorf("network: neighbours: %w", err)
	}
	for _, n := range known {
		name := names[n.LinkIndex]
		if n.IP.Equal(a.AsSlice()) && n.State&spoken != 0 && !strings.HasPrefix(name, h.LinkPrefix()) {
			return fmt.Sprintf("a machine's on %s (%s)", name, n.HardwareAddr), nil
		}
	}
	return "", nil
}

// spoken are the states of a neighbour whose hardware address is known.
const spoken = netlink.NUD_REACHABLE | netlink.NUD_STALE | netlink.NUD_DELAY | netlink.NUD_PROBE | netlink.NUD_PERMANENT

func destination(r netlink.Route) string {
	if r.Dst == nil || r.Dst.IP.IsUnspecified() {
		return "everywhere"
	}
	return r.Dst.String()
}
