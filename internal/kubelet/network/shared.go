package network

import (
	"context"
	"errors"
	"fmt"
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

// watchShared calls changed when the gateway's address or the route of the node's range is taken away, until ctx
// ends or nothing can be heard any more. started is called once nothing is missed. A pod's route that goes with its
// link is of no interest.
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
