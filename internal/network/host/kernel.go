package host

import (
	"errors"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// dumpTries bounds how often a listing is repeated.
const dumpTries = 20

// Dump lists objects of the kernel. It repeats the listing while the kernel answers EINTR, which means that something
// changed during it, as often happens while pods are created and deleted.
func Dump[T any](list func() ([]T, error)) (out []T, err error) {
	for range dumpTries {
		if out, err = list(); !errors.Is(err, unix.EINTR) {
			return out, err
		}
	}
	return nil, err
}

// Single is the network of one address.
func Single(a netip.Addr) *net.IPNet { return Net(netip.PrefixFrom(a, 32)) }

// Net converts an IPv4 range.
func Net(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), 32)}
}

// Prefix converts an address with a mask; invalid if it is not IPv4.
func Prefix(p *net.IPNet) netip.Prefix {
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

// Neighbour is a permanent entry for an address behind a link.
func Neighbour(link int, addr netip.Addr, mac net.HardwareAddr) *netlink.Neigh {
	return &netlink.Neigh{LinkIndex: link, IP: addr.AsSlice(), HardwareAddr: mac, State: netlink.NUD_PERMANENT}
}

// MAC is a locally administered hardware address made from an IPv4 address.
func MAC(a netip.Addr) net.HardwareAddr {
	b := a.As4()
	return net.HardwareAddr{0x0a, 0x58, b[0], b[1], b[2], b[3]}
}
