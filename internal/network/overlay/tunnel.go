package overlay

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"minik8s/internal/network/host"
)

// Device is the name of the VXLAN device. It begins like those of pods' links, so that the rule against forged
// sources covers it: what comes out of it must be from a peer's range.
func (o *Overlay) Device() string { return o.host.LinkPrefix() + "-vxlan" }

// makeTunnel makes the VXLAN device, or makes it what it should be. Without routes nothing is accepted from a new one,
// because no source is behind it. The device has no peers of its own: each route names the node to send to, and
// the hardware address of that node's end is known. So nothing is learned, nor asked by ARP.
func (o *Overlay) makeTunnel(own netip.Prefix) (made bool, err error) {
	mtu, mac := o.MTU(), tunnelMAC(own)
	if link, err := o.host.LinkByName(o.Device()); err == nil {
		v, ok := link.(*netlink.Vxlan)
		a := link.Attrs()
		if ok && v.FlowBased && v.Port == int(o.cfg.Port) && a.HardwareAddr.String() == mac.String() && a.RawFlags&unix.IFF_NOARP != 0 {
			if a.MTU != mtu {
				if err := o.host.LinkSetMTU(link, mtu); err != nil {
					return false, fmt.Errorf("network: MTU of %s: %w", a.Name, err)
				}
				made = true
			}
			if a.Flags&net.FlagUp == 0 {
				made = true
				if err := o.startTunnel(link); err != nil {
					return false, err
				}
			}
			return made, nil
		}
		if err := o.host.LinkDel(link); err != nil {
			return false, fmt.Errorf("network: %s: %w", a.Name, err)
		}
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.HardwareAddr = o.Device(), mtu, mac
	device := &netlink.Vxlan{LinkAttrs: attrs, FlowBased: true, Port: int(o.cfg.Port)}
	if err := o.host.LinkAdd(device); err != nil {
		return false, fmt.Errorf("network: %s: %w", o.Device(), err)
	}
	if err = o.host.LinkSetARPOff(device); err == nil {
		err = host.Harden(o.Device())
	}
	if err != nil {
		return false, errors.Join(fmt.Errorf("network: %s: %w", o.Device(), err), o.host.LinkDel(device))
	}
	return true, o.startTunnel(device)
}

// startTunnel brings the device up, or removes it. Only now does the kernel open the UDP port.
func (o *Overlay) startTunnel(link netlink.Link) error {
	err := o.host.LinkSetUp(link)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EADDRINUSE), errors.Is(err, unix.EEXIST):
		err = fmt.Errorf("network: UDP port %d, which VXLAN needs, is in use on this host by another program: stop it, or set another vxlan-port on all nodes: %w",
			o.cfg.Port, err)
	default:
		err = fmt.Errorf("network: %s: %w", o.Device(), err)
	}
	return errors.Join(err, o.host.LinkDel(link))
}

// addressTunnel gives the device its address, and takes away any other.
func (o *Overlay) addressTunnel(addr netip.Addr) (changed bool, err error) {
	link, err := o.host.LinkByName(o.Device())
	if err != nil {
		return false, fmt.Errorf("network: %s: %w", o.Device(), err)
	}
	list, err := host.Dump(func() ([]netlink.Addr, error) { return o.host.AddrList(link, netlink.FAMILY_V4) })
	if err != nil {
		return false, fmt.Errorf("network: addresses of %s: %w", o.Device(), err)
	}
	want, there := host.Single(addr), false
	for _, a := range list {
		if a.IPNet.String() == want.String() {
			there = true
			continue
		}
		changed = true
		if err := o.host.AddrDel(link, &a); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
			return changed, fmt.Errorf("network: address %s of %s: %w", a.IPNet, o.Device(), err)
		}
	}
	if !there {
		changed = true
		if err := o.host.AddrReplace(link, &netlink.Addr{IPNet: want}); err != nil {
			return changed, fmt.Errorf("network: address %s of %s: %w", addr, o.Device(), err)
		}
	}
	return changed, nil
}

// removeTunnel removes the device, and with it its routes.
func (o *Overlay) removeTunnel() (removed bool, err error) {
	link, err := o.host.LinkByName(o.Device())
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return false, nil
	}
	if err == nil {
		err = o.host.LinkDel(link)
	}
	if err != nil {
		return false, fmt.Errorf("network: %s: %w", o.Device(), err)
	}
	return true, nil
}

// MTU is how large a packet may be that the host's link can still carry inside VXLAN.
func (o *Overlay) MTU() int {
	mtu := o.host.DefaultMTU()
	if mtu == 0 {
		mtu = defaultLinkMTU
	}
	return mtu - vxlanOverhead
}

// defaultLinkMTU is Ethernet's.
const defaultLinkMTU = 1500
