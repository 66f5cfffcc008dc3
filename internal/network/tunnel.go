package network

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// tunnelName is the name of the VXLAN device. It begins like those of pods' links, so that the rule against forged
// sources covers it: what comes out of it must be from a peer's range.
func (n *Network) tunnelName() string { return n.linkPrefix() + "-vxlan" }

// makeTunnel makes the VXLAN device, or makes it what it should be. Without routes nothing is accepted from a new one,
// because no source is behind it. The device has no peers of its own: each route names the node to send to, and
// the hardware address of that node's end is known. So nothing is learned, nor asked by ARP.
func (n *Network) makeTunnel(own netip.Prefix) (made bool, err error) {
	mtu, mac := n.tunnelMTU(), tunnelMAC(own)
	if link, err := n.host.LinkByName(n.tunnelName()); err == nil {
		v, ok := link.(*netlink.Vxlan)
		a := link.Attrs()
		if ok && v.FlowBased && v.Port == int(n.cfg.VXLANPort) && a.HardwareAddr.String() == mac.String() && a.RawFlags&unix.IFF_NOARP != 0 {
			if a.MTU != mtu {
				if err := n.host.LinkSetMTU(link, mtu); err != nil {
					return false, fmt.Errorf("network: MTU of %s: %w", a.Name, err)
				}
				made = true
			}
			if a.Flags&net.FlagUp == 0 {
				made = true
				if err := n.startTunnel(link); err != nil {
					return false, err
				}
			}
			return made, nil
		}
		if err := n.host.LinkDel(link); err != nil {
			return false, fmt.Errorf("network: %s: %w", a.Name, err)
		}
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.HardwareAddr = n.tunnelName(), mtu, mac
	device := &netlink.Vxlan{LinkAttrs: attrs, FlowBased: true, Port: int(n.cfg.VXLANPort)}
	if err := n.host.LinkAdd(device); err != nil {
		return false, fmt.Errorf("network: %s: %w", n.tunnelName(), err)
	}
	if err = n.host.LinkSetARPOff(device); err == nil {
		err = hardenLink(n.tunnelName())
	}
	if err != nil {
		return false, errors.Join(fmt.Errorf("network: %s: %w", n.tunnelName(), err), n.host.LinkDel(device))
	}
	return true, n.startTunnel(device)
}

// startTunnel brings the device up, or removes it. Only now does the kernel open the UDP port.
func (n *Network) startTunnel(link netlink.Link) error {
	err := n.host.LinkSetUp(link)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EADDRINUSE), errors.Is(err, unix.EEXIST):
		err = fmt.Errorf("network: UDP port %d, which VXLAN needs, is in use on this host by another program: stop it, or set another vxlan-port on all nodes: %w",
			n.cfg.VXLANPort, err)
	default:
		err = fmt.Errorf("network: %s: %w", n.tunnelName(), err)
	}
	return errors.Join(err, n.host.LinkDel(link))
}

// addressTunnel gives the device its address, and takes away any other.
func (n *Network) addressTunnel(addr netip.Addr) (changed bool, err error) {
	link, err := n.host.LinkByName(n.tunnelName())
	if err != nil {
		return false, fmt.Errorf("network: %s: %w", n.tunnelName(), err)
	}
	list, err := dump(func() ([]netlink.Addr, error) { return n.host.AddrList(link, netlink.FAMILY_V4) })
	if err != nil {
		return false, fmt.Errorf("network: addresses of %s: %w", n.tunnelName(), err)
	}
	want, there := slash32(addr), false
	for _, a := range list {
		if a.IPNet.String() == want.String() {
			there = true
			continue
		}
		changed = true
		if err := n.host.AddrDel(link, &a); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
			return changed, fmt.Errorf("network: address %s of %s: %w", a.IPNet, n.tunnelName(), err)
		}
	}
	if !there {
		changed = true
		if err := n.host.AddrReplace(link, &netlink.Addr{IPNet: want}); err != nil {
			return changed, fmt.Errorf("network: address %s of %s: %w", addr, n.tunnelName(), err)
		}
	}
	return changed, nil
}

// removeTunnel removes the device, and with it its routes.
func (n *Network) removeTunnel() (removed bool, err error) {
	link, err := n.host.LinkByName(n.tunnelName())
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return false, nil
	}
	if err == nil {
		err = n.host.LinkDel(link)
	}
	if err != nil {
		return false, fmt.Errorf("network: %s: %w", n.tunnelName(), err)
	}
	return true, nil
}

// tunnelMTU is how large a packet may be that the host's link can still carry inside VXLAN.
func (n *Network) tunnelMTU() int {
	mtu := n.defaultMTU()
	if mtu == 0 {
		mtu = defaultLinkMTU
	}
	return mtu - vxlanOverhead
}

// defaultLinkMTU is Ethernet's.
const defaultLinkMTU = 1500

// ipEncap is the kernel's light-weight tunnel of a route: packets are wrapped for dst. The library knows only that for
// IPv6.
type ipEncap struct {
	id       uint64 // the VNI
	dst, src netip.Addr
}

// Of linux/lwtunnel.h.
const (
	lwtunnelIPID  = 1
	lwtunnelIPDst = 2
	lwtunnelIPSrc = 3
)

// Type implements netlink.Encap.
func (e *ipEncap) Type() int { return nl.LWTUNNEL_ENCAP_IP }

// Encode implements netlink.Encap.
func (e *ipEncap) Encode() ([]byte, error) {
	out := nl.NewRtAttr(lwtunnelIPID, binary.BigEndian.AppendUint64(nil, e.id)).Serialize()
	out = append(out, nl.NewRtAttr(lwtunnelIPDst, e.dst.AsSlice()).Serialize()...)
	if e.src.IsValid() {
		out = append(out, nl.NewRtAttr(lwtunnelIPSrc, e.src.AsSlice()).Serialize()...)
	}
	return out, nil
}

// Decode implements netlink.Encap. The library does not call it for this type.
func (e *ipEncap) Decode([]byte) error { return errors.New("not supported") }

// String implements netlink.Encap.
func (e *ipEncap) String() string { return fmt.Sprintf("ip id %d src %s dst %s", e.id, e.src, e.dst) }

// Equal implements netlink.Encap.
func (e *ipEncap) Equal(x netlink.Encap) bool {
	o, ok := x.(*ipEncap)
	return ok && *o == *e
}
