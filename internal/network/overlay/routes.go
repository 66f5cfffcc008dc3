package overlay

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"minik8s/internal/network/host"
)

// changeRoutes makes the routes to peers what they should be.
func (o *Overlay) changeRoutes() (changed bool, err error) {
	there, err := o.peerRoutes()
	if err != nil {
		return false, err
	}
	tunnel := 0
	if o.needs.tunnel {
		link, err := o.host.LinkByName(o.Device())
		if err != nil {
			return false, fmt.Errorf("network: %s: %w", o.Device(), err)
		}
		tunnel = link.Attrs().Index
		if changed, err = o.changeNeighbours(tunnel); err != nil {
			return changed, err
		}
	}
	var errs []error
	for _, r := range there {
		dst := host.Prefix(r.Dst)
		if _, wanted := o.needs.routes[dst]; wanted {
			continue
		}
		changed = true
		if err := o.host.RouteDel(&r); err != nil && !errors.Is(err, unix.ESRCH) {
			errs = append(errs, fmt.Errorf("network: route to %s: %w", dst, err))
		}
		delete(o.routed, dst)
	}
	for dst, want := range o.needs.routes {
		route := o.kernelRoute(dst, want, tunnel)
		same := func(r netlink.Route) bool {
			return host.Prefix(r.Dst) == dst && r.LinkIndex == route.LinkIndex && r.Gw.Equal(route.Gw) && r.MTU == route.MTU &&
				(route.Src == nil || r.Src.Equal(route.Src))
		}
		// The kernel's list does not show the tunnel's own addresses; what this process wrote is remembered.
		if o.routed[dst] == want && slices.ContainsFunc(there, same) {
			continue
		}
		changed = true
		if err := o.host.RouteReplace(route); err != nil {
			errs = append(errs, fmt.Errorf("network: route to the pods %s of %s: %w", dst, want.peer, err))
			continue
		}
		o.routed[dst] = want
	}
	return changed, errors.Join(errs...)
}

// changeNeighbours makes the hardware addresses of the peers' ends of the tunnel known.
func (o *Overlay) changeNeighbours(tunnel int) (changed bool, err error) {
	list, err := host.Dump(func() ([]netlink.Neigh, error) { return o.host.NeighList(tunnel, netlink.FAMILY_V4) })
	if err != nil {
		return false, fmt.Errorf("network: neighbours of %s: %w", o.Device(), err)
	}
	right := map[netip.Addr]bool{}
	for _, e := range list {
		addr, _ := netip.AddrFromSlice(e.IP.To4())
		mac, wanted := o.needs.endpoints[addr]
		right[addr] = wanted && e.State&netlink.NUD_PERMANENT != 0 && e.HardwareAddr.String() == mac.String()
		if !wanted && e.State&netlink.NUD_PERMANENT != 0 {
			changed = true
			if err := o.host.NeighDel(&e); err != nil && !errors.Is(err, unix.ENOENT) {
				return changed, fmt.Errorf("network: neighbour %s of %s: %w", addr, o.Device(), err)
			}
		}
	}
	for addr, mac := range o.needs.endpoints {
		if right[addr] {
			continue
		}
		changed = true
		if err := o.host.NeighSet(host.Neighbour(tunnel, addr, mac)); err != nil {
			return changed, fmt.Errorf("network: neighbour %s of %s: %w", addr, o.Device(), err)
		}
	}
	return changed, nil
}

func (o *Overlay) kernelRoute(dst netip.Prefix, r peerRoute, tunnel int) *netlink.Route {
	out := &netlink.Route{LinkIndex: r.link, Gw: r.peer.AsSlice(), Protocol: host.Protocol, Priority: o.host.Metric(), MTU: r.mtu,
		Dst: host.Net(dst)}
	if r.link == 0 {
		// The peer's address as next hop gives one neighbour entry per peer, and not one per pod.
		out.LinkIndex, out.Flags = tunnel, int(netlink.FLAG_ONLINK)
		out.Encap = &ipEncap{id: vni, dst: r.peer, src: r.outer}
	}
	if r.source.IsValid() {
		out.Src = r.source.AsSlice()
	}
	return out
}

// peerRoutes are this daemon's routes to peers.
func (o *Overlay) peerRoutes() ([]netlink.Route, error) {
	list, err := o.host.OwnRoutes()
	return slices.DeleteFunc(list, func(r netlink.Route) bool { return r.Type != unix.RTN_UNICAST }), err
}
