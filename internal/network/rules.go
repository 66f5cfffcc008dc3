package network

import (
	"net/netip"

	"minik8s/internal/network/hostports"
	"minik8s/internal/network/overlay"
	"minik8s/internal/nft"
)

// tables is the prefix of the table names of all daemons.
const tables = ours + "pods-"

// ours is the prefix of the names of the tables of all our parts: none of them is a filter that has to be opened.
const ours = "minik8s-"

// TableName is the name of this daemon's nftables table.
func (n *Network) TableName() string { return tables + n.host.Owner() }

var loopback = netip.MustParsePrefix("127.0.0.0/8")

// rules is the wanted table. It is pure; TestRules shows it in the nft tool's syntax. links is the prefix of the
// names of pods' links, and tunnel the name of the VXLAN device.
func rules(name, links, tunnel string, pods netip.Prefix, elements []nft.Element) nft.Table {
	t := nft.Table{
		Name: name,
		Sets: []nft.Set{
			{Name: hostports.ByPort, Key: []nft.Type{nft.Protocol, nft.Port}, Value: []nft.Type{nft.Address, nft.Port}},
			{Name: hostports.ByAddress, Key: []nft.Type{nft.Address, nft.Protocol, nft.Port}, Value: []nft.Type{nft.Address, nft.Port}},
			{Name: hostports.Hairpins, Key: []nft.Type{nft.Address, nft.Address}},
			{Name: overlay.RemoteRanges, Key: []nft.Type{nft.Address}, Ranges: true},
			{Name: overlay.TunnelPorts, Key: []nft.Type{nft.Port}},
			{Name: overlay.Endpoints, Key: []nft.Type{nft.Address}},
		},
	}
	for _, e := range elements {
		for i := range t.Sets {
			if s := &t.Sets[i]; s.Name == e.Set {
				s.Elements = append(s.Elements, e)
			}
		}
	}
	// Host ports on loopback are forwarded in user space: routing them would open the host's loopback to pods.
	forward := []nft.Rule{
		{nft.ToLocal(), nft.NotTo(loopback), nft.DNATByAddress(hostports.ByAddress)},
		{nft.ToLocal(), nft.NotTo(loopback), nft.DNATByPort(hostports.ByPort)},
	}
	t.Chains = []nft.Chain{
		{Name: "spoofed", Hook: nft.Prerouting, Priority: nft.PriorityRaw, Rules: []nft.Rule{
			{nft.InBy(links), nft.Spoofed(), nft.Drop()},
			// Whoever can send to the tunnel can send to every pod as any other.
			{nft.UDPToAny(overlay.TunnelPorts), nft.ToLocal(), nft.NotFromAny(overlay.Endpoints), nft.Drop()},
		}},
		{Name: "prerouting", NAT: true, Hook: nft.Prerouting, Priority: nft.PriorityDstNAT, Rules: forward},
		{Name: "output", NAT: true, Hook: nft.Output, Priority: nft.PriorityDstNAT, Rules: forward},
		{Name: "postrouting", NAT: true, Hook: nft.Postrouting, Priority: nft.PrioritySrcNAT, Rules: []nft.Rule{
			{nft.From(pods), nft.NotTo(pods), nft.NotToAny(overlay.RemoteRanges), nft.Masquerade()},
			// The peer drops what is not from this node's range, and could not answer it by the tunnel.
			{nft.OutBy(tunnel), nft.NotFrom(pods), nft.Masquerade()},
			{nft.PairIn(hostports.Hairpins), nft.Masquerade()},
		}},
	}
	return t
}

// desired is the wanted table, with the elements of the present host ports and peers.
func (n *Network) desired() nft.Table {
	pods := n.pool.Prefix()
	elements := n.overlay.Elements()
	for _, p := range n.ports {
		elements = append(elements, p.Elements()...)
	}
	return rules(n.TableName(), n.host.LinkPrefix(), n.overlay.Device(), pods, elements)
}
