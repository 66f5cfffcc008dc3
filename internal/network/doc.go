// Package network is the pods' network of this node: an address and a routed veth per pod, masquerading of what
// leaves the cluster, host ports, and the way to the pods of other nodes.
//
// Who calls it: roles, which makes it, calls Prepare, Setup, Keep and in the end Teardown, and passes it to the container
// runtime as the interface that the runtime declares: connect a sandbox, disconnect it, publish its ports. Package peers
// below it calls SetPeers. It knows a pod's sandbox id, address and ports, and nothing about containers or Nodes. "The host" is the network namespace the process
// was started in, which need not be the machine's.
//
//	network.go    New, Prepare, Setup, Teardown; the range
//	veth.go       Connect and Disconnect: links, routes, neighbours
//	ipam.go       the addresses of the range
//	peers.go      the other nodes: what is needed for them, as data
//	across.go     their routes, compared with the kernel's; tunnel.go: the VXLAN device
//	hostports.go  ports of the host, by nftables; loopback.go: on 127.0.0.1, by the daemon
//	rules.go      the table of ours, as data
//	keep.go       compares and repairs when the kernel's state has changed; shared.go: routes and addresses
//	firewall.go   filters of others: which chains to open, and for what; hosttools.go: those that only their own
//	              tool can change
//	flows.go      tracked UDP flows of removed pods
//	sysctl.go     settings of the host and of links; settings.go: events about them
//
// # The shape of it
//
// A pod has eth0 with its address as a /32 and a default route by 169.254.1.1. The other end, in the host's
// namespace, is named after the daemon and the sandbox ("mk" and twelve digits) and carries a /32 route to the pod.
// Both ends know the other's hardware address (a permanent neighbour entry), so no ARP is spoken and no bridge is
// needed. 169.254.1.1 itself is an address of the host's lo, for ping and traceroute. The rest of the node's range is
// unreachable: packets to an address that no pod has do not leave by the default route. IPv6 is off on the host's
// end.
//
// Rules live in the nftables table "minik8s-pods-" with four digits of the daemon's own, and their number is fixed;
// what changes are the elements of its sets and maps, one by one:
//
//	spoofed      drops what a pod sends with a source address that is not its own, what comes out of the tunnel from
//	             no peer's range, and packets for the tunnel from a host that is no peer
//	prerouting   dnat by the maps hostports (protocol, port) and hostports-at (address, protocol, port)
//	output       the same, for connections the host itself makes to one of its addresses
//	postrouting  masquerades pods' egress outside the ranges of all nodes, what the host sends into the tunnel with
//	             another source than the tunnel's, and a pod that reaches itself by its host port
//
// A host port on 127.0.0.1 is forwarded in user space by the daemon (TCP and UDP). To route it (route_localnet), the
// kernel would have to accept packets for 127.0.0.0/8 from a pod's link, and only a rule that anybody can flush would
// protect the host's own loopback from the pod. These connections end with the daemon; all others continue without
// it.
//
// # Other nodes
//
// Each peer's range has one route, with a protocol number of ours and a metric of this daemon's, so that the routes of an
// earlier run are known as ours. A pod keeps its address on the way to any other pod. To an address of another host it
// goes out as to the rest of the world, masqueraded.
//
// By VXLAN, the route itself says to which host packets are sent (a light-weight tunnel), and there is one device for all
// peers, in the kernel's external mode, without forwarding entries, learning and ARP. The next hop is the peer's address,
// so there is one permanent neighbour entry per peer. Its hardware address is made from the peer's range: every node can
// tell it, and no two are equal, because the kernel drops a frame with its own address as one that has come back. The
// device has the second address of the node's range, which is the host's own when it speaks to pods of peers: so they
// are answered by the tunnel, also where rp_filter is strict. While no peer needs it there is no device, and the sets of
// the table are empty.
//
// With Config.Direct the routes to peers on the same link lead to the peer's address; those behind a router have the
// tunnel all the same, because the router does not know the pods. All nodes must agree on it, and on the port: with a
// strict rp_filter a packet that comes by the other way is dropped. Nobody guards a plain link: who is on it can send
// packets with any pod's address. VXLAN is not encrypted either, and who can forge the address of a peer can send to its
// port; from all others packets are dropped before they are unwrapped.
//
// Pods' links have the MTU of the host's link, less 50 for VXLAN unless Config.Direct is set, also on a node alone: a
// link keeps its MTU when a peer comes. A route has the MTU of the link by which its peer is reached, so that larger
// packets from a pod are answered with what fits.
//
// A wrong address or range of one node must not harm others: plan refuses what overlaps this node's range, a network,
// address or gateway of the host, an earlier peer's range or address, or what no pod can have, and says so in the log.
// It looks again when an address or a link of the host changes. Routes of the host's administrator to the same range
// come first, because they have no metric.
//
// # Others on the host
//
// A packet is dropped if any table drops it, whatever ours says. So where a base chain of another table drops
// everything that is forwarded, or that the host receives or sends (by its policy, or by a rule that only matches
// links), rules that accept pods' traffic are inserted at its head: iptables-nft (Docker, ufw), firewalld, hand-made
// tables. Their comment names our table. Rules that drop by address, port or state are assumed to be intended and
// stay in force. Traffic from pods to the node itself is accepted only for replies, the API, DNS and ping, from peers'
// pods only for replies and ping; and the tunnel's UDP port is opened, because our own table drops strangers. The old
// iptables has no events and is changed by its own tool, iptables-legacy; a firewalld that owns its table by
// firewall-cmd (zone trusted). Trouble names the filters that cannot be opened, and rules that drop a part of the
// traffic; the Node's condition shows them.
//
// Keep listens for changes of any nftables ruleset, for the loss of the gateway's address or of a route and, while there
// are peers, for changes of the host's links and addresses. It compares and repairs: our table as a whole, our rules in
// the chains of other tables, the host's routes and settings that pods share, and the ways to peers. Nothing is polled.
// There is one gap: a neighbour entry of the tunnel that somebody deletes by hand is made again only with the next
// repair, because events of neighbours come with every ARP of the host.
//
// # What survives
//
// Links, routes and rules are in the kernel and stay when the daemon ends, also by kill -9. Setup may be called any
// number of times: it writes the rules as one transaction, with the host ports of the sandboxes for which Restore and
// AddHostPorts were called before. Until SetPeers is called, the peers are those to whom an earlier run has left
// routes: so a restart, also one while no master can be reached, interrupts nothing. Routes are marked as this
// daemon's own, also the one that holds the node's range: Teardown finds by it a range that only the master knew.
// Addresses are not stored here: the runtime's records have them, and Restore marks them as used again. The original
// values of changed settings of the host (ip_forward) are in the state file, written before the change, and Teardown
// restores them.
package network
