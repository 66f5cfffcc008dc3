package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"minik8s/internal/network/host"
)

// setUpShared makes what all pods share beside the rules: forwarding, the gateway's address and the unreachable route
// for the node's range; without pods, no address.
func (n *Network) setUpShared(pods netip.Prefix) error {
	if err := n.host.Set("net/ipv4/ip_forward", "1"); err != nil { // also without pods: for Services
		return fmt.Errorf("network: %w", err)
	}
	if n.cfg.NoPods {
		return n.addUnreachableRoute(pods)
	}
	lo, err := n.host.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("network: lo: %w", err)
	}
	if err := n.host.LinkSetUp(lo); err != nil {
		return fmt.Errorf("network: lo: %w", err)
	}
	gw := &netlink.Addr{IPNet: host.Single(host.Gateway), Scope: int(netlink.SCOPE_LINK)}
	if err := n.host.AddrReplace(lo, gw); err != nil {
		return fmt.Errorf("network: gateway address: %w", err)
	}
	return n.addUnreachableRoute(pods)
}

// sharedComplete reports whether everything that setUpShared makes still exists.
func (n *Network) sharedComplete(pods netip.Prefix) (bool, error) {
	if forward, err := host.Sysctl("net/ipv4/ip_forward"); err != nil || forward != "1" {
		return false, err
	}
	if n.cfg.NoPods {
		return n.rangeHeld(pods)
	}
	lo, err := n.host.LinkByName("lo")
	if err != nil || lo.Attrs().Flags&net.FlagUp == 0 {
		return false, err
	}
	addrs, err := host.Dump(func() ([]netlink.Addr, error) { return n.host.AddrList(nil, netlink.FAMILY_V4) })
	if err != nil {
		return false, err
	}
	if !slices.ContainsFunc(addrs, func(a netlink.Addr) bool { return a.IP.Equal(host.Gateway.AsSlice()) }) {
		return false, nil
	}
	return n.rangeHeld(pods)
}

// rangeHeld reports whether the unreachable route for the node's range exists.
func (n *Network) rangeHeld(pods netip.Prefix) (bool, error) {
	held := n.unreachable(pods)
	routes, err := host.Dump(func() ([]netlink.Route, error) {
		return n.host.RouteListFiltered(netlink.FAMILY_V4, held, netlink.RT_FILTER_DST|netlink.RT_FILTER_TYPE)
	})
	return len(routes) > 0, err
}

// chooseSource finds out from where the host sends to pods. A machine without any address but those of lo, such as a laptop that is
// offline, would send from 0.0.0.0, and nothing would come back: it sends from the gateway's address.
func (n *Network) chooseSource() error {
	addrs, err := host.Dump(func() ([]netlink.Addr, error) { return n.host.AddrList(nil, netlink.FAMILY_V4) })
	if err != nil {
		return fmt.Errorf("network: the host's addresses: %w", err)
	}
	n.source = host.Gateway
	if slices.ContainsFunc(addrs, func(a netlink.Addr) bool { return sendsFrom(a.IP, a.Scope) }) {
		n.source = netip.Addr{}
	}
	return nil
}

// sendsFrom says whether the kernel may choose an address as the source of what it sends to another link. Those that we add to lo are
// none by their scope, and systemd-resolved's is no address of the machine.
func sendsFrom(addr net.IP, scope int) bool {
	return scope < int(netlink.SCOPE_LINK) && !addr.Equal(host.Resolver.AsSlice())
}

// unrouted are the connected sandboxes to whose address the host has no route, or one with another source, by id.
func (n *Network) unrouted() (map[string]netip.Addr, error) {
	routes, err := host.Dump(func() ([]netlink.Route, error) { return n.host.RouteList(nil, netlink.FAMILY_V4) })
	if err != nil {
		return nil, err
	}
	there, source := map[netip.Addr]bool{}, net.IP(n.source.AsSlice())
	for _, r := range routes {
		if r.Dst == nil {
			continue
		}
		if ones, _ := r.Dst.Mask.Size(); ones == 32 && r.Src.Equal(source) {
			if a, ok := netip.AddrFromSlice(r.Dst.IP.To4()); ok {
				there[a] = true
			}
		}
	}
	out := map[string]netip.Addr{}
	for id, addr := range n.pods {
		if !there[addr] {
			out[id] = addr
		}
	}
	return out, nil
}

// restoreRoutes adds the missing routes to pods whose link still exists.
func (n *Network) restoreRoutes() (restored bool, err error) {
	missing, err := n.unrouted()
	for id, addr := range missing {
		link, notFound := n.host.LinkByName(n.LinkName(id))
		if notFound != nil {
			continue // the pod is being removed
		}
		if e := n.routeTo(link.Attrs().Index, addr, n.source); e != nil {
			err = errors.Join(err, e)
			continue
		}
		restored = true
		n.cfg.Log.Info("the route to a pod is whole again", "address", addr)
	}
	return restored, err
}

// isPod reports whether dst is the /32 of a connected pod.
func (n *Network) isPod(dst *net.IPNet) bool {
	if dst == nil {
		return false
	}
	addr, ok := netip.AddrFromSlice(dst.IP.To4())
	if ones, _ := dst.Mask.Size(); !ok || ones != 32 {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, a := range n.pods {
		if a == addr {
			return true
		}
	}
	return false
}

// eventBuffer is how many bytes of events the kernel may keep until they are read. A thousand peers that go at once are
// too many for what it keeps by default.
const eventBuffer = 2 << 20

// sourceless says whether the host has no address that it could send from.
func (n *Network) sourceless() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.source.IsValid()
}

// watchShared calls changed when the gateway's address, the route of the node's range or that of a pod is removed,
// until ctx or a subscription ends. started is called once no later change can be missed.
func (n *Network) watchShared(ctx context.Context, started, changed func()) error {
	done := make(chan struct{})
	defer close(done)
	lost := make(chan error, 2)
	fail := func(err error) {
		select {
		case lost <- err:
		default:
		}
	}
	routes, addrs := make(chan netlink.RouteUpdate), make(chan netlink.AddrUpdate)
	if err := netlink.RouteSubscribeWithOptions(routes, done, netlink.RouteSubscribeOptions{ErrorCallback: fail, ReceiveBufferSize: eventBuffer, ReceiveBufferForceSize: true}); err != nil {
		return fmt.Errorf("network: events of routes: %w", err)
	}
	if err := netlink.AddrSubscribeWithOptions(addrs, done, netlink.AddrSubscribeOptions{ErrorCallback: fail, ReceiveBufferSize: eventBuffer, ReceiveBufferForceSize: true}); err != nil {
		return fmt.Errorf("network: events of addresses: %w", err)
	}
	started()
	for {
		select {
		case r, ok := <-routes:
			if !ok {
				return errors.New("network: events of routes ended")
			}
			if r.Type == unix.RTM_DELROUTE && (n.isPod(r.Route.Dst) || r.Route.Protocol == host.Protocol) {
				changed()
			}
			// A route that replaces ours is reported as a new one, without an event for the end of ours.
			ours := r.Route.Type == unix.RTN_UNREACHABLE
			if r.Route.Dst != nil && r.Route.Dst.String() == n.PodCIDR().String() && ours == (r.Type == unix.RTM_DELROUTE) {
				changed()
			}
		case a, ok := <-addrs:
			if !ok {
				return errors.New("network: events of addresses ended")
			}
			if sendsFrom(a.LinkAddress.IP, a.Scope) && a.LinkAddress.IP.To4() != nil && n.sourceless() == a.NewAddr {
				changed() // the first address, or maybe the last one
			}
			// A new address may be one that a peer's range overlaps, or the node's own again.
			if !a.NewAddr && (a.LinkAddress.IP.Equal(host.Gateway.AsSlice()) || n.isServed(a.LinkAddress.IP)) || n.overlay.HasPeers() && a.LinkAddress.IP.To4() != nil {
				changed()
			}
		case err := <-lost:
			changed() // some may have been missed
			return err
		case <-ctx.Done():
			return nil
		}
	}
}
