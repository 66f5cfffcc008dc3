package overlay

import (
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"minik8s/internal/network/host"
	"minik8s/internal/network/ipam"
	"minik8s/internal/nft"
)

// DefaultPort is the UDP port that Linux uses for VXLAN.
const DefaultPort = 8472

// Config is what an Overlay is made from.
type Config struct {
	// NodeIP is the address from which this node's tunnel sends. It may be none of the host's, as behind a NAT; then
	// the kernel chooses.
	NodeIP netip.Addr
	// Direct routes to peers on the same link without a tunnel. All nodes must have the same setting.
	Direct bool
	// Port is the UDP port of the tunnel, the same on all nodes; 0: DefaultPort.
	Port uint16
	Log  *slog.Logger
}

// Filter is what Sync asks of the host's packet filter.
type Filter interface {
	// Fill makes the table's elements what Elements says now, before packets take a new way.
	Fill() (changed bool, err error)
	// EndFlowsTo ends the flows to ranges that have become a peer's only now.
	EndFlowsTo(ranges []netip.Prefix)
}

// Overlay is the way to the peers' pods. Its calls must not overlap, but for those of Concerns and HasPeers.
type Overlay struct {
	host   *host.Host
	cfg    Config
	filter Filter

	hasPeers atomic.Bool // there are peers, so more events matter
	peers    []Peer
	known    bool                       // SetPeers was called; else peers are those of an earlier run
	alone    bool                       // there are no peers, and nothing of theirs is left
	needs    needs                      // what the peers need
	routed   map[netip.Prefix]peerRoute // the routes to peers as this process wrote them
	refused  []string                   // what of the peers is refused
}

// New makes the Overlay of a host. Nothing is changed before Sync.
func New(h *host.Host, cfg Config, f Filter) *Overlay {
	if cfg.Port == 0 {
		cfg.Port = DefaultPort
	}
	return &Overlay{host: h, cfg: cfg, filter: f, routed: map[netip.Prefix]peerRoute{}}
}

// SetPeers says which other nodes there are: all of them, because those that are not in the list lose their routes with
// the next Sync. Where two contradict each other, the earlier one wins.
func (o *Overlay) SetPeers(list []Peer) {
	o.peers, o.known = slices.Clone(list), true
	o.hasPeers.Store(len(list) > 0)
}

// PeerAt says which peer has an address, in words; empty: none.
func (o *Overlay) PeerAt(a netip.Addr) string {
	for _, p := range o.peers {
		if p.Address == a {
			return "the address of node " + p.Node
		}
	}
	return ""
}

// HasPeers reports whether there are any, or something of theirs may be left.
func (o *Overlay) HasPeers() bool { return o.hasPeers.Load() }

// Concerns reports whether an event is about a link that may lead to peers: the tunnel, or one of the host's own.
func (o *Overlay) Concerns(m syscall.NetlinkMessage) bool {
	if !o.HasPeers() {
		return false
	}
	link := host.ChangedLink(m)
	return link != "" && (link == o.Device() || !strings.HasPrefix(link, o.host.LinkPrefix()))
}

// Elements are those that the peers need in the packet filter's table, in a fixed order.
func (o *Overlay) Elements() []nft.Element { return o.needs.elements() }

// Ranges are those of the peers that are accepted, sorted.
func (o *Overlay) Ranges() []netip.Prefix { return o.needs.ranges() }

// TunnelPort is the UDP port that has to be open; 0: no tunnel is needed.
func (o *Overlay) TunnelPort() uint16 {
	if !o.needs.tunnel {
		return 0
	}
	return o.needs.port
}

// Sync makes the host's routes, tunnel and table what the peers need of a node whose own range this is, and reports
// whether anything was different.
func (o *Overlay) Sync(own netip.Prefix) (changed bool, err error) {
	if len(o.peers) == 0 && (o.alone || !o.known) {
		return false, nil // a node alone pays nothing
	}
	changed, err = o.sync(own)
	if o.alone = err == nil && len(o.peers) == 0; err != nil {
		o.hasPeers.Store(true) // there is something left to do
	}
	return changed, err
}

func (o *Overlay) sync(own netip.Prefix) (changed bool, err error) {
	s, err := o.surroundings(own)
	if err != nil {
		return false, err
	}
	want, refused := plan(s, o.peers)
	o.logRefused(refused)
	var noTunnel error
	if want.tunnel {
		made, err := o.makeTunnel(s.own)
		if changed = made; err != nil {
			noTunnel, s.noTunnel = err, true
			want, _ = plan(s, o.peers)
		}
	}
	fresh := slices.DeleteFunc(want.ranges(), func(r netip.Prefix) bool { _, had := o.needs.routes[r]; return had })
	o.needs = want
	refilled, err := o.filter.Fill()
	changed = changed || refilled
	if err != nil {
		return changed, err
	}
	if want.tunnel {
		addressed, err := o.addressTunnel(ipam.Tunnel(s.own))
		if changed = changed || addressed; err != nil {
			return changed, err
		}
	}
	rerouted, err := o.changeRoutes()
	changed = changed || rerouted
	if !want.tunnel && noTunnel == nil {
		removed, rerr := o.removeTunnel()
		changed, err = changed || removed, errors.Join(err, rerr)
	}
	if len(fresh) > 0 {
		o.filter.EndFlowsTo(fresh)
	}
	return changed, errors.Join(err, noTunnel)
}

// Adopt takes the routes of an earlier run for what the peers are, until SetPeers says it: so that a restart interrupts
// nothing.
func (o *Overlay) Adopt(own netip.Prefix) error {
	if o.known {
		return nil
	}
	list, err := o.peerRoutes()
	if err != nil || len(list) == 0 {
		return err
	}
	o.peers = nil
	for _, r := range list {
		if addr, ok := netip.AddrFromSlice(r.Gw.To4()); ok {
			o.peers = append(o.peers, Peer{Node: addr.String(), Address: addr, Ranges: []netip.Prefix{host.Prefix(r.Dst)}})
		}
	}
	o.hasPeers.Store(true)
	s, err := o.surroundings(own)
	if err != nil {
		return err
	}
	o.needs, _ = plan(s, o.peers)
	return nil
}

// Remove removes what Sync has made, but for the table's elements, and forgets the peers.
func (o *Overlay) Remove() error {
	o.peers, o.known, o.needs = nil, false, needs{}
	o.hasPeers.Store(false)
	_, err := o.changeRoutes()
	_, terr := o.removeTunnel()
	return errors.Join(err, terr)
}

// logRefused logs what of the peers is refused, when that has changed.
func (o *Overlay) logRefused(refused []string) {
	if !slices.Equal(refused, o.refused) {
		for _, r := range refused {
			if !slices.Contains(o.refused, r) {
				o.cfg.Log.Warn("a node's pods are not reachable from this host: the "+r, "expected", "a range and an address that no other node and no link of this host has")
			}
		}
	}
	o.refused = refused
}
