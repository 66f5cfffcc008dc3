package machine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
)

// Bridge makes a bridge that hosts can be wired to, in the calling thread's network namespace. With an address it is a
// subnet's router, too; the zero value: none.
func Bridge(name string, addr netip.Prefix) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	// Its own address; else it has that of a port, which changes with the ports.
	attrs.HardwareAddr = net.HardwareAddr{2, 0, byte(rand.Int32()), byte(rand.Int32()), byte(rand.Int32()), byte(rand.Int32())}
	b := &netlink.Bridge{LinkAttrs: attrs}
	err := netlink.LinkAdd(b)
	if err == nil && addr.IsValid() {
		err = netlink.AddrAdd(b, &netlink.Addr{IPNet: IPNet(addr)})
	}
	if err == nil {
		err = netlink.LinkSetUp(b)
	}
	if err != nil {
		return fmt.Errorf("bridge %s: %w", name, err)
	}
	return nil
}

// Wire lays a link with this name between a bridge of the calling thread's namespace and eth0 of another. It ends with
// either of them.
func Wire(name, bridge string, to *os.File) error {
	b, err := netlink.LinkByName(bridge)
	if err != nil {
		return fmt.Errorf("bridge %s: %w", bridge, err)
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MasterIndex = name, b.Attrs().Index
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerNamespace: netlink.NsFd(int(to.Fd()))}
	if err = netlink.LinkAdd(veth); err == nil {
		err = netlink.LinkSetUp(veth)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Configure gives eth0 of the calling thread's namespace an address, and the namespace its loopback and the way to
// everywhere else; without a valid gateway: to its own network alone.
func Configure(addr netip.Prefix, gateway netip.Addr) error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("lo: %w", err)
	}
	eth0, err := netlink.LinkByName("eth0")
	if err != nil {
		return fmt.Errorf("eth0: %w", err)
	}
	err = errors.Join(netlink.LinkSetUp(lo), netlink.LinkSetUp(eth0), netlink.AddrAdd(eth0, &netlink.Addr{IPNet: IPNet(addr)}))
	if err == nil && gateway.IsValid() {
		err = netlink.RouteAdd(&netlink.Route{LinkIndex: eth0.Attrs().Index, Gw: gateway.AsSlice()})
	}
	if err != nil {
		return fmt.Errorf("eth0: %w", err)
	}
	return nil
}

// Readdress gives eth0 of the calling thread's namespace another address in the place of the one that it has, and the way to
// everywhere else, which goes with it, again: as when a lease of DHCP is not given once more.
func Readdress(from, to netip.Prefix, gateway netip.Addr) error {
	eth0, err := netlink.LinkByName("eth0")
	if err != nil {
		return fmt.Errorf("eth0: %w", err)
	}
	err = errors.Join(netlink.AddrDel(eth0, &netlink.Addr{IPNet: IPNet(from)}), netlink.AddrAdd(eth0, &netlink.Addr{IPNet: IPNet(to)}))
	if err == nil {
		err = netlink.RouteReplace(&netlink.Route{LinkIndex: eth0.Attrs().Index, Gw: gateway.AsSlice()})
	}
	if err != nil {
		return fmt.Errorf("eth0: %w", err)
	}
	return nil
}

// IPNet converts an address with its network, or a range.
func IPNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
