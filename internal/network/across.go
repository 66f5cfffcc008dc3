package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ownProtocol marks routes as ours, with a metric that is the daemon's own: so they are found again after a restart. Routes of the host's administrator, which have no metric, come before them.
const ownProtocol = netlink.RouteProtocol(109)

// metric is that of this daemon's marked routes.
func (n *Network) metric() int {
	digits, err := strconv.ParseUint(n.owner, 16, 16)
	if err != nil {
		panic(err) // they are hexadecimal
	}
	return 1<<16 + int(digits)
}

// SetPeers says which other nodes there are: all of them, because those that are not in the list lose their routes.
// Where two contradict each other, the earlier one wins. It may be called before the node's range is known, and before
// Setup; then it takes effect with Setup. On an error Keep tries again, as it does when something is lost later.
func (n *Network) SetPeers(ctx context.Context, list []Peer) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.peers, n.peersKnown = slices.Clone(list), true
	n.hasPeers.Store(len(list) > 0)
	if !n.ready {
		return nil
	}
	if _, err := n.syncPeers(); err != nil {
		n.hasPeers.Store(true)
		n.poke()
		return err
	}
	_, err := n.checkFirewalls()
	return err
}

// syncPeers makes the host's routes, tunnel and table what the peers need, and reports whether anything was different.
func (n *Network) syncPeers() (changed bool, err error) {
	if len(n.peers) == 0 && (n.alone || !n.peersKnown) {
		return false, nil // a node alone pays nothing
	}
	n.alone = false
	s, err := n.surroundings()
	if err != nil {
		return false, err
	}
	want, refused := plan(s, n.peers)
	n.logRefused(refused)
	var noTunnel error
	if want.tunnel {
		made, err := n.makeTunnel(s.own)
		if changed = made; err != nil {
			noTunnel, s.noTunnel = err, true
			want, _ = plan(s, n.peers)
		}
	}
	fresh := slices.DeleteFunc(want.ranges(), func(r netip.Prefix) bool { _, had := n.across.routes[r]; return had })
	n.across = want
	refilled, err := n.changeElements()
	changed = changed || refilled
	if err != nil {
		return changed, err
	}
	if want.tunnel {
		addressed, err := n.addressTunnel(tunnelAddress(s.own))
		if changed = changed || addressed; err != nil {
			return changed, err
		}
	}
	rerouted, err := n.changeRoutes()
	changed = changed || rerouted
	if !want.tunnel && noTunnel == nil {
		removed, rerr := n.removeTunnel()
		changed, err = changed || removed, errors.Join(err, rerr)
	}
	if len(fresh) > 0 {
		n.endFlowsTo(fresh)
	}
	n.alone = err == nil && len(n.peers) == 0
	return changed, errors.Join(err, noTunnel)
}

// changeElements makes the table's elements for peers what they should be.
func (n *Network) changeElements() (changed bool, err error) {
	want := n.across.elements()
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

// changeRoutes makes the routes to peers what they should be.
func (n *Network) changeRoutes() (changed bool, err error) {
	there, err := n.peerRoutes()
	if err != nil {
		return false, err
	}
	tunnel := 0
	if n.across.tunnel {
		link, err := n.host.LinkByName(n.tunnelName())
		if err != nil {
			return false, fmt.Errorf("network: %s: %w", n.tunnelName(), err)
		}
		tunnel = link.Attrs().Index
		if changed, err = n.changeNeighbours(tunnel); err != nil {
			return changed, err
		}
	}
	var errs []error
	for _, r := range there {
		dst := prefixOf(r.Dst)
		if _, wanted := n.across.routes[dst]; wanted {
			continue
		}
		changed = true
		if err := n.host.RouteDel(&r); err != nil && !errors.Is(err, unix.ESRCH) {
			errs = append(errs, fmt.Errorf("network: route to %s: %w", dst, err))
		}
		delete(n.routed, dst)
	}
	for dst, want := range n.across.routes {
		route := n.kernelRoute(dst, want, tunnel)
		same := func(r netlink.Route) bool {
			return prefixOf(r.Dst) == dst && r.LinkIndex == route.LinkIndex && r.Gw.Equal(route.Gw) && r.MTU == route.MTU &&
				(route.Src == nil || r.Src.Equal(route.Src))
		}
		// The kernel's list does not show the tunnel's own addresses; what this process wrote is remembered.
		if n.routed[dst] == want && slices.ContainsFunc(there, same) {
			continue
		}
		changed = true
		if err := n.host.RouteReplace(route); err != nil {
			errs = append(errs, fmt.Errorf("network: route to the pods %s of %s: %w", dst, want.peer, err))
			continue
		}
		n.routed[dst] = want
	}
	return changed, errors.Join(errs...)
}

// changeNeighbours makes the hardware addresses of the peers' ends of the tunnel known.
func (n *Network) changeNeighbours(tunnel int) (changed bool, err error) {
	list, err := dump(func() ([]netlink.Neigh, error) { return n.host.NeighList(tunnel, netlink.FAMILY_V4) })
	if err != nil {
		return false, fmt.Errorf("network: neighbours of %s: %w", n.tunnelName(), err)
	}
	right := map[netip.Addr]bool{}
	for _, e := range list {
		addr, _ := netip.AddrFromSlice(e.IP.To4())
		mac, wanted := n.across.endpoints[addr]
		right[addr] = wanted && e.State&netlink.NUD_PERMANENT != 0 && e.HardwareAddr.String() == mac.String()
		if !wanted && e.State&netlink.NUD_PERMANENT != 0 {
			changed = true
			if err := n.host.NeighDel(&e); err != nil && !errors.Is(err, unix.ENOENT) {
				return changed, fmt.Errorf("network: neighbour %s of %s: %w", addr, n.tunnelName(), err)
			}
		}
	}
	for addr, mac := range n.across.endpoints {
		if right[addr] {
			continue
		}
		changed = true
		if err := n.host.NeighSet(neighbour(tunnel, addr.AsSlice(), mac)); err != nil {
			return changed, fmt.Errorf("network: neighbour %s of %s: %w", addr, n.tunnelName(), err)
		}
	}
	return changed, nil
}

func (n *Network) kernelRoute(dst netip.Prefix, r peerRoute, tunnel int) *netlink.Route {
	out := &netlink.Route{LinkIndex: r.link, Gw: r.peer.AsSlice(), Protocol: ownProtocol, Priority: n.metric(), MTU: r.mtu,
		Dst: &net.IPNet{IP: dst.Addr().AsSlice(), Mask: net.CIDRMask(dst.Bits(), 32)}}
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
func (n *Network) peerRoutes() ([]netlink.Route, error) {
	list, err := n.ownRoutes()
	return slices.DeleteFunc(list, func(r netlink.Route) bool { return r.Type != unix.RTN_UNICAST }), err
}

// ownRoutes are this daemon's marked routes.
func (n *Network) ownRoutes() ([]netlink.Route, error) {
	list, err := dump(func() ([]netlink.Route, error) {
		return n.host.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Protocol: ownProtocol}, netlink.RT_FILTER_PROTOCOL)
	})
	if err != nil {
		return nil, fmt.Errorf("network: routes: %w", err)
	}
	return slices.DeleteFunc(list, func(r netlink.Route) bool { return r.Dst == nil || r.Priority != n.metric() }), nil
}

// adoptPeers takes the routes of an earlier run for what the peers are, until SetPeers says it: so that a restart
// interrupts nothing.
func (n *Network) adoptPeers() error {
	if n.peersKnown {
		return nil
	}
	list, err := n.peerRoutes()
	if err != nil || len(list) == 0 {
		return err
	}
	n.peers = nil
	for _, r := range list {
		if addr, ok := netip.AddrFromSlice(r.Gw.To4()); ok {
			n.peers = append(n.peers, Peer{Node: addr.String(), Address: addr, Ranges: []netip.Prefix{prefixOf(r.Dst)}})
		}
	}
	n.hasPeers.Store(true)
	s, err := n.surroundings()
	if err != nil {
		return err
	}
	n.across, _ = plan(s, n.peers)
	return nil
}

// removePeers removes what SetPeers has made.
func (n *Network) removePeers() error {
	n.peers, n.peersKnown, n.across = nil, false, across{}
	n.hasPeers.Store(false)
	_, err := n.changeRoutes()
	_, terr := n.removeTunnel()
	return errors.Join(err, terr)
}

// surroundings reads what of the host decides about the way to the peers.
func (n *Network) surroundings() (surroundings, error) {
	s := surroundings{own: n.pool.current(), direct: n.cfg.Direct, port: n.cfg.VXLANPort, hops: map[netip.Addr]firstHop{}}
	addrs, err := dump(func() ([]netlink.Addr, error) { return n.host.AddrList(nil, netlink.FAMILY_V4) })
	if err != nil {
		return s, fmt.Errorf("network: addresses: %w", err)
	}
	routes, err := dump(func() ([]netlink.Route, error) { return n.host.RouteList(nil, netlink.FAMILY_V4) })
	if err != nil {
		return s, fmt.Errorf("network: routes: %w", err)
	}
	tunnel := 0
	if link, err := n.host.LinkByName(n.tunnelName()); err == nil {
		tunnel = link.Attrs().Index
	}
	for _, a := range addrs {
		p := prefixOf(a.IPNet)
		if a.LinkIndex == tunnel || !p.IsValid() || p.Addr() == Gateway {
			continue
		}
		if p.Addr() == n.cfg.NodeIP {
			s.nodeIP = n.cfg.NodeIP
		}
		s.addrs = append(s.addrs, p.Addr())
		s.taken = append(s.taken, p.Masked())
	}
	for _, r := range routes {
		ours := r.Protocol == ownProtocol && r.Priority == n.metric()
		if gw, ok := netip.AddrFromSlice(r.Gw.To4()); ok && !ours {
			s.taken = append(s.taken, netip.PrefixFrom(gw, 32))
		}
	}
	mtus := map[int]int{}
	for _, p := range n.peers {
		if _, known := s.hops[p.Address]; known || !p.Address.Is4() {
			continue
		}
		s.hops[p.Address] = n.firstHop(p.Address, mtus)
	}
	return s, nil
}

// firstHop is how the host's routes lead to an address; the zero value if they do not. mtus caches those of links.
func (n *Network) firstHop(addr netip.Addr, mtus map[int]int) firstHop {
	list, err := n.host.RouteGet(addr.AsSlice())
	if err != nil || len(list) == 0 {
		return firstHop{}
	}
	h := firstHop{link: list[0].LinkIndex, onLink: list[0].Gw == nil && list[0].Type == unix.RTN_UNICAST}
	if _, known := mtus[h.link]; !known {
		if link, err := n.host.LinkByIndex(h.link); err == nil {
			mtus[h.link] = link.Attrs().MTU
		}
	}
	h.mtu = mtus[h.link]
	return h
}

// logRefused logs what of the peers is refused, when that has changed.
func (n *Network) logRefused(refused []string) {
	if !slices.Equal(refused, n.refused) {
		for _, r := range refused {
			if !slices.Contains(n.refused, r) {
				n.cfg.Log.Warn("a node's pods are not reachable from this host: the "+r, "expected", "a range and an address that no other node and no link of this host has")
			}
		}
	}
	n.refused = refused
}

// prefixOf converts an address with a mask; invalid if it is not IPv4.
func prefixOf(p *net.IPNet) netip.Prefix {
	if p == nil {
		return netip.Prefix{}
	}
	addr, ok := netip.AddrFromSlice(p.IP.To4())
	if !ok {
		return netip.Prefix{}
	}
	ones, _ := p.Mask.Size()
	return netip.PrefixFrom(addr, ones)
}
