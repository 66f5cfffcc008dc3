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
)

// putShared puts in place what all pods share beside the rules: forwarding, the gateway's address and the route that
// holds the node's range.
func (n *Network) putShared(pods netip.Prefix) error {
	if err := n.changeSysctl("net/ipv4/ip_forward", "1"); err != nil {
		return fmt.Errorf("network: %w", err)
	}
	lo, err := n.host.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("network: lo: %w", err)
	}
	if err := n.host.LinkSetUp(lo); err != nil {
		return fmt.Errorf("network: lo: %w", err)
	}
	gw := &netlink.Addr{IPNet: slash32(Gateway), Scope: int(netlink.SCOPE_LINK)}
	if err := n.host.AddrReplace(lo, gw); err != nil {
		return fmt.Errorf("network: gateway address: %w", err)
	}
	return n.holdRange(pods)
}

// sharedWhole says whether what putShared does is still so.
func (n *Network) sharedWhole(pods netip.Prefix) (bool, error) {
	if forward, err := readSysctl("net/ipv4/ip_forward"); err != nil || forward != "1" {
		return false, err
	}
	addrs, err := dump(func() ([]netlink.Addr, error) { return n.host.AddrList(nil, netlink.FAMILY_V4) })
	if err != nil {
		return false, err
	}
	if !slices.ContainsFunc(addrs, func(a netlink.Addr) bool { return a.IP.Equal(Gateway.AsSlice()) }) {
		return false, nil
	}
	held := unreachable(pods)
	routes, err := dump(func() ([]netlink.Route, error) {
		return n.host.RouteListFiltered(netlink.FAMILY_V4, held, netlink.RT_FILTER_DST|netlink.RT_FILTER_TYPE)
	})
	return len(routes) > 0, err
}

// lost are the connected pods to whose address no route leads, by slot.
func (n *Network) lost() (map[string]netip.Addr, error) {
	routes, err := dump(func() ([]netlink.Route, error) { return n.host.RouteList(nil, netlink.FAMILY_V4) })
	if err != nil {
		return nil, err
	}
	there := map[netip.Addr]bool{}
	for _, r := range routes {
		if r.Dst == nil {
			continue
		}
		if ones, _ := r.Dst.Mask.Size(); ones == 32 {
			if a, ok := netip.AddrFromSlice(r.Dst.IP.To4()); ok {
				there[a] = true
			}
		}
	}
	out := map[string]netip.Addr{}
	for slot, addr := range n.pods {
		if !there[addr] {
			out[slot] = addr
		}
	}
	return out, nil
}

// findAgain has the host lead to pods that it has lost, those whose link is still there.
func (n *Network) findAgain() (found bool, err error) {
	lost, err := n.lost()
	for slot, addr := range lost {
		link, gone := n.host.LinkByName(n.LinkName(slot))
		if gone != nil {
			continue // the pod is on its way out
		}
		if e := n.leadTo(link.Attrs().Index, addr); e != nil {
			err = errors.Join(err, e)
			continue
		}
		found = true
		n.cfg.Log.Info("a pod that the host had lost the way to is reached again", "address", addr)
	}
	return found, err
}

// isLost says whether that is the address of a pod which is connected.
func (n *Network) isLost(dst *net.IPNet) bool {
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

// watchShared calls changed when the gateway's address, the route of the node's range or that of a pod is taken away,
// until ctx ends or nothing can be heard any more. started is called once nothing is missed.
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
	if err := netlink.RouteSubscribeWithOptions(routes, done, netlink.RouteSubscribeOptions{ErrorCallback: fail}); err != nil {
		return fmt.Errorf("network: events of routes: %w", err)
	}
	if err := netlink.AddrSubscribeWithOptions(addrs, done, netlink.AddrSubscribeOptions{ErrorCallback: fail}); err != nil {
		return fmt.Errorf("network: events of addresses: %w", err)
	}
	started()
	for {
		select {
		case r, ok := <-routes:
			if !ok {
				return errors.New("network: events of routes ended")
			}
			if r.Type == unix.RTM_DELROUTE && n.isLost(r.Route.Dst) {
				changed()
			}
			// A route that replaces ours is told as a new one.
			ours := r.Route.Type == unix.RTN_UNREACHABLE
			if r.Route.Dst != nil && r.Route.Dst.String() == n.PodCIDR().String() && ours == (r.Type == unix.RTM_DELROUTE) {
				changed()
			}
		case a, ok := <-addrs:
			if !ok {
				return errors.New("network: events of addresses ended")
			}
			if !a.NewAddr && a.LinkAddress.IP.Equal(Gateway.AsSlice()) {
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
