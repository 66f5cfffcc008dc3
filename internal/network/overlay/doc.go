// Package overlay is the way from this host to the pods of other nodes, the peers: a route to each peer's range, through
// a VXLAN device or directly where they share a link.
//
// Who calls it: package network, which serialises the calls and has the packet filter's table: an Overlay says which
// elements it needs there, and has them changed between the device and the routes. Package peers says who the peers are.
// It knows addresses and ranges of other nodes, and nothing about Nodes or this node's pods. Sync makes the kernel what
// the peers need, and may be called any number of times: what is right is left as it is.
//
//	plan.go    what the peers need, as data; pure
//	overlay.go the peers, and Sync
//	routes.go  routes and neighbours, compared with the kernel's
//	around.go  what of the host decides about the ways
//	tunnel.go  the VXLAN device; encap.go: the tunnel in a route
//
// # The ways
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
// Routes of the host's administrator to the same range come first, because they have no metric.
//
// There is one gap: a neighbour entry of the tunnel that somebody deletes by hand is made again only with the next Sync,
// because events of neighbours come with every ARP of the host.
//
// # What survives
//
// Routes, neighbours and the device are in the kernel and stay when the daemon ends, also by kill -9. Until SetPeers is
// called, the peers are those to whom an earlier run has left routes (Adopt): so a restart, also one while no master can
// be reached, interrupts nothing.
package overlay
