// Package network is the pods' network of this node: an address and a routed veth per pod, masquerading of what
// leaves the cluster, host ports, and the way to the pods of other nodes.
//
// Who calls it: roles, which makes it, calls Prepare, Setup, Keep and in the end Teardown, and passes it to the container
// runtime as the interface that the runtime declares: connect a sandbox, disconnect it, publish its ports. Package peers
// calls SetPeers. It knows a pod's sandbox id, address and ports, and nothing about containers or Nodes. "The host" is
// the network namespace the process was started in, which need not be the machine's.
//
//	network.go    New, Prepare, Setup, Teardown; the range
//	veth.go       Connect and Disconnect: links, routes, neighbours
//	hostports.go  the host ports of sandboxes
//	peers.go      the other nodes: SetPeers, and what they need of the table and of other filters
//	rules.go      the table of ours, as data
//	served.go     addresses at which the host's own parts answer: Serve; nameservice.go: a link for the host's resolver
//	keep.go       tells of the host's addresses; compares and repairs when the kernel's state has changed; shared.go: routes and addresses
//	flows.go      tracked UDP flows of removed pods
//
// It has the one lock, the one table and the one loop that repairs; what is decided and done for each purpose is in
// packages of its own below, which know nothing of each other but for host and the addresses of ipam:
//
//	ipam       the addresses of the range
//	overlay    routes and tunnel to other nodes' pods
//	hostfilter filters of others on the host
//	hostports  what a host port needs
//	host       the host's namespace: lists, settings, events, and the marks of what is ours
//
// # The shape of it
//
// A pod has eth0 with its address as a /32 and a default route by 169.254.1.1. The other end, in the host's
// namespace, is named after the daemon and the sandbox ("mk" and twelve digits) and carries a /32 route to the pod.
// Both ends know the other's hardware address (a permanent neighbour entry), so no ARP is spoken and no bridge is
// needed. 169.254.1.1 itself is an address of the host's lo. It answers ping and traceroute, and is
// the source of the host's packets to pods while the host has no other address (offline). The rest of the node's range is
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
// # Others on the host
//
// A packet is dropped if any table drops it, whatever ours says: hostfilter has the others accept pods' traffic, and
// Trouble is what they still drop; the Node's condition shows it.
//
// Keep listens for changes of any nftables ruleset, for the loss of the gateway's address or of a route and, while there
// are peers, for changes of the host's links and addresses. It compares and repairs: our table as a whole, our rules in
// the chains of other tables, the host's routes and settings that pods share, and the ways to peers. Nothing is polled.
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
