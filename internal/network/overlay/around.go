package overlay

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"minik8s/internal/network/host"
)

// surroundings reads what of the host decides about the way to the peers.
func (o *Overlay) surroundings(own netip.Prefix) (surroundings, error) {
	s := surroundings{own: own, direct: o.cfg.Direct, port: o.cfg.Port, hops: map[netip.Addr]firstHop{}}
	addrs, err := host.Dump(func() ([]netlink.Addr, error) { return o.host.AddrList(nil, netlink.FAMILY_V4) })
	if err != nil {
		return s, fmt.Errorf("network: addresses: %w", err)
	}
	routes, err := host.Dump(func() ([]netlink.Route, error) { return o.host.RouteList(nil, netlink.FAMILY_V4) })
	if err != nil {
		return s, fmt.Errorf("network: routes: %w", err)
	}
	tunnel := 0
	if link, err := o.host.LinkByName(o.Device()); err == nil {
		tunnel = link.Attrs().Index
	}
	for _, a := range addrs {
		p := host.Prefix(a.IPNet)
		if a.LinkIndex == tunnel || !p.IsValid() || p.Addr() == host.Gateway {
			continue
		}
		if p.Addr() == o.cfg.NodeIP {
			s.nodeIP = o.cfg.NodeIP
		}
		s.addrs = append(s.addrs, p.Addr())
		s.taken = append(s.taken, p.Masked())
	}
	for _, r := range routes {
		ours := r.Protocol == host.Protocol && r.Priority == o.host.Metric()
		if gw, ok := netip.AddrFromSlice(r.Gw.To4()); ok && !ours {
			s.taken = append(s.taken, netip.PrefixFrom(gw, 32))
		}
	}
	mtus := map[int]int{}
	for _, p := range o.peers {
		if _, known := s.hops[p.Address]; known || !p.Address.Is4() {
			continue
		}
		s.hops[p.Address] = o.firstHop(p.Address, mtus)
	}
	return s, nil
}

// firstHop is how the host's routes lead to an address; the zero value if they do not. mtus caches those of links.
func (o *Overlay) firstHop(addr netip.Addr, mtus map[int]int) firstHop {
	list, err := o.host.RouteGet(addr.AsSlice())
	if err != nil || len(list) == 0 {
		return firstHop{}
	}
	h := firstHop{link: list[0].LinkIndex, onLink: list[0].Gw == nil && list[0].Type == unix.RTN_UNICAST}
	if _, known := mtus[h.link]; !known {
		if link, err := o.host.LinkByIndex(h.link); err == nil {
			mtus[h.link] = link.Attrs().MTU
		}
	}
	h.mtu = mtus[h.link]
	return h
}
