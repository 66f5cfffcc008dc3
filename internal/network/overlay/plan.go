package overlay

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"

	"minik8s/internal/network/host"
	"minik8s/internal/network/ipam"
	"minik8s/internal/nft"
)

// Peer is another node, as the cluster knows it.
type Peer struct {
	Node    string         // its name, for messages
	Address netip.Addr     // at which this host reaches it
	Ranges  []netip.Prefix // of its pods
}

// vxlanOverhead is what VXLAN adds to a packet: the outer IPv4, UDP and VXLAN headers and the inner Ethernet header.
const vxlanOverhead = 50

// vni is the VXLAN network identifier. Clusters that share hosts differ by their UDP port.
const vni = 1

// surroundings are what of this host decides about the way to its peers.
type surroundings struct {
	own      netip.Prefix            // the range of this node's pods
	nodeIP   netip.Addr              // from which this node's tunnel sends; invalid: the kernel chooses
	addrs    []netip.Addr            // of the host
	taken    []netip.Prefix          // networks of the host's links, and gateways of its routes
	hops     map[netip.Addr]firstHop // to the peers' addresses
	direct   bool                    // route directly to peers on the same link
	port     uint16                  // of VXLAN
	noTunnel bool                    // the tunnel cannot be made
}

// firstHop is how the host's routes lead to an address.
type firstHop struct {
	link   int // its index
	onLink bool
	mtu    int
}

// needs is what the host needs for its peers: routes, a tunnel, and elements of the table. It is comparable piece by
// piece with what is there.
type needs struct {
	routes    map[netip.Prefix]peerRoute
	endpoints map[netip.Addr]net.HardwareAddr // that may send to the tunnel, with the hardware addresses of their ends
	tunnel    bool                            // some route needs it
	port      uint16
}

// peerRoute is the route to a peer's range.
type peerRoute struct {
	peer   netip.Addr // the next hop
	link   int        // for a direct route; 0: by the tunnel
	source netip.Addr // the host's own, when it speaks to these pods; invalid: the kernel chooses
	outer  netip.Addr // the source of the tunnel's packets; invalid: the kernel chooses
	mtu    int        // 0: that of the link
}

// The sets of the packet filter's table for which an Overlay has elements.
const (
	RemoteRanges = "remote-ranges" // of other nodes' pods
	TunnelPorts  = "tunnel-ports"  // of UDP, while there is a tunnel
	Endpoints    = "endpoints"     // addresses of the nodes that may send to the tunnel
)

// unroutable are ranges that nobody's pods can have.
var unroutable = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("224.0.0.0/3"), netip.MustParsePrefix("0.0.0.0/8")}

// plan works out what the peers need. It is pure. A peer earlier in the list has precedence: what contradicts it is
// refused, and so is everything that would lead the host's own traffic astray. refused says what, and why.
func plan(s surroundings, peers []Peer) (a needs, refused []string) {
	a = needs{routes: map[netip.Prefix]peerRoute{}, endpoints: map[netip.Addr]net.HardwareAddr{}, port: s.port}
	if !s.own.IsValid() {
		return a, nil
	}
	var accepted []Peer // with the ranges that they get
	for _, p := range peers {
		if why := badAddress(p.Address, s, accepted); why != "" {
			refused = append(refused, fmt.Sprintf("address %s of node %s %s", p.Address, p.Node, why))
			continue
		}
		kept := Peer{Node: p.Node, Address: p.Address}
		for _, r := range p.Ranges {
			r = r.Masked()
			if why := badRange(r, s, append(accepted, kept)); why != "" {
				refused = append(refused, fmt.Sprintf("pod range %s of node %s %s", r, p.Node, why))
				continue
			}
			kept.Ranges = append(kept.Ranges, r)
		}
		accepted = append(accepted, kept)
	}
	for _, p := range accepted {
		hop := s.hops[p.Address]
		route := peerRoute{peer: p.Address, link: hop.link}
		if !s.direct || !hop.onLink {
			route = peerRoute{peer: p.Address, source: ipam.Tunnel(s.own), outer: s.nodeIP}
			if hop.mtu > 0 {
				route.mtu = hop.mtu - vxlanOverhead
			}
			if len(p.Ranges) == 0 || s.noTunnel {
				continue
			}
			a.tunnel, a.endpoints[p.Address] = true, tunnelMAC(p.Ranges[0])
		}
		for _, r := range p.Ranges {
			a.routes[r] = route
		}
	}
	return a, refused
}

// badAddress says what is wrong with a peer's address; empty: nothing.
func badAddress(addr netip.Addr, s surroundings, accepted []Peer) string {
	switch {
	case !addr.Is4():
		return "is not an IPv4 address"
	case slices.ContainsFunc(unroutable, func(p netip.Prefix) bool { return p.Contains(addr) }):
		return "is none that a host can have"
	case slices.Contains(s.addrs, addr):
		return "is this host's own"
	case s.own.Contains(addr):
		return fmt.Sprintf("is in the range of this node's pods, %s", s.own)
	}
	for _, p := range accepted {
		for _, r := range p.Ranges {
			if r.Contains(addr) {
				return fmt.Sprintf("is in the range of node %s's pods, %s", p.Node, r)
			}
		}
	}
	return ""
}

// badRange says what is wrong with a peer's range; empty: nothing.
func badRange(r netip.Prefix, s surroundings, accepted []Peer) string {
	switch {
	case !r.IsValid() || !r.Addr().Is4():
		return "is not an IPv4 range"
	case r.Bits() < 8:
		return "is too large, a /8 is the most"
	case s.own.Overlaps(r):
		return fmt.Sprintf("overlaps that of this node, %s", s.own)
	}
	for _, u := range unroutable {
		if u.Overlaps(r) {
			return "is none that pods can have"
		}
	}
	for _, t := range s.taken {
		if t.Overlaps(r) {
			return fmt.Sprintf("overlaps a network or address of this host, %s", t)
		}
	}
	for _, p := range accepted {
		if r.Contains(p.Address) {
			return fmt.Sprintf("contains the address of node %s, %s", p.Node, p.Address)
		}
		for _, o := range p.Ranges {
			if o.Overlaps(r) {
				return fmt.Sprintf("overlaps that of node %s, %s", p.Node, o)
			}
		}
	}
	return ""
}

// tunnelMAC is the hardware address of the tunnel's end at the node with this range. Every node can tell that of all
// others, and no two are equal: the kernel takes a frame from its own address for one that has come back.
func tunnelMAC(own netip.Prefix) net.HardwareAddr { return host.MAC(ipam.Tunnel(own)) }

// elements are the table's elements for the peers, in a fixed order.
func (a needs) elements() (out []nft.Element) {
	if a.tunnel {
		out = append(out, nft.Element{Set: TunnelPorts, Key: []byte{byte(a.port >> 8), byte(a.port)}})
	}
	for _, e := range slices.SortedFunc(maps.Keys(a.endpoints), netip.Addr.Compare) {
		b := e.As4()
		out = append(out, nft.Element{Set: Endpoints, Key: b[:]})
	}
	for _, r := range a.ranges() {
		out = append(out, nft.Range(RemoteRanges, r)...)
	}
	return out
}

// ranges are the peers' ranges, sorted.
func (a needs) ranges() (out []netip.Prefix) {
	for r := range a.routes {
		out = append(out, r)
	}
	slices.SortFunc(out, comparePrefixes)
	return out
}

func comparePrefixes(a, b netip.Prefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
}
