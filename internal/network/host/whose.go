package host

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/vishvananda/netlink"
)

// Around is what this host knows of its surroundings: whose addresses are.
type Around struct{ whose map[netip.Addr]string }

// Whose says whose an address is, in words: this host's own on another link than lo, that of a gateway of its routes, or of a
// machine that it speaks with. Empty: nobody's that it knows.
func (a Around) Whose(addr netip.Addr) string { return a.whose[addr] }

// Around reads what this host knows now.
func (h *Host) Around() (out Around, _ error) {
	out.whose = map[netip.Addr]string{}
	is := func(ip []byte, whose string) {
		if a, ok := netip.AddrFromSlice(ip); ok && out.whose[a.Unmap()] == "" {
			out.whose[a.Unmap()] = whose
		}
	}
	links, err := Dump(h.LinkList)
	if err != nil {
		return out, fmt.Errorf("network: links: %w", err)
	}
	names := map[int]string{}
	for _, l := range links {
		names[l.Attrs().Index] = l.Attrs().Name
	}
	addrs, err := Dump(func() ([]netlink.Addr, error) { return h.AddrList(nil, netlink.FAMILY_V4) })
	if err != nil {
		return out, fmt.Errorf("network: addresses: %w", err)
	}
	for _, own := range addrs {
		if names[own.LinkIndex] != "lo" {
			is(own.IP, "this machine's own on "+names[own.LinkIndex])
		}
	}
	routes, err := Dump(func() ([]netlink.Route, error) { return h.RouteList(nil, netlink.FAMILY_V4) })
	if err != nil {
		return out, fmt.Errorf("network: routes: %w", err)
	}
	for _, r := range routes {
		whose := "the gateway of this machine's route to " + destination(r)
		is(r.Gw, whose)
		for _, hop := range r.MultiPath {
			is(hop.Gw, whose)
		}
	}
	known, err := Dump(func() ([]netlink.Neigh, error) { return h.NeighList(0, netlink.FAMILY_V4) })
	if err != nil {
		return out, fmt.Errorf("network: neighbours: %w", err)
	}
	for _, n := range known {
		if name := names[n.LinkIndex]; n.State&present != 0 && !strings.HasPrefix(name, h.LinkPrefix()) {
			is(n.IP, fmt.Sprintf("a machine's on %s (%s)", name, n.HardwareAddr))
		}
	}
	return out, nil
}

// present are the states of a neighbour that has answered lately, or of which somebody has said where it is. What has not
// been spoken with for long (stale) may have gone.
const present = netlink.NUD_REACHABLE | netlink.NUD_DELAY | netlink.NUD_PROBE | netlink.NUD_PERMANENT

func destination(r netlink.Route) string {
	if r.Dst == nil || r.Dst.IP.IsUnspecified() {
		return "everywhere"
	}
	return r.Dst.String()
}
