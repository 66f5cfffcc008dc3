// Package network is the pods' network of this node: an address and a routed veth per pod, masquerading of what
// leaves the cluster, and host ports.
//
// Who calls it: roles, which makes it, calls Prepare, Setup, Keep and in the end Teardown, and passes it to the container
// runtime as the interface that the runtime declares: connect a sandbox, disconnect it, publish its ports. It knows a
// pod's sandbox id, address and ports, and nothing about containers. "The host" is the network namespace the process
// was started in, which need not be the machine's.
//
//	network.go    New, Prepare, Setup, Teardown; the range
//	veth.go       Connect and Disconnect: links, routes, neighbours
//	ipam.go       the addresses of the range
//	hostports.go  ports of the host, by nftables; loopback.go: on 127.0.0.1, by the daemon
//	rules.go      the table of ours, as data
//	keep.go       compares and repairs when the kernel's state has changed; shared.go: routes and addresses
//	firewall.go   filters of others: which chains to open, and for what; hosttools.go: those that only their own
//	              tool can change
//	flows.go      tracked UDP flows of removed pods
//	sysctl.go     settings of the host and of links
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
//	spoofed      drops what a pod sends with a source address that is not its own
//	prerouting   dnat by the maps hostports (protocol, port) and hostports-at (address, protocol, port)
//	output       the same, for connections the host itself makes to one of its addresses
//	postrouting  masquerades pods' egress outside their range, and a pod that reaches itself by its host port
//
// A host port on 127.0.0.1 is forwarded in user space by the daemon (TCP and UDP). To route it (route_localnet), the
// kernel would have to accept packets for 127.0.0.0/8 from a pod's link, and only a rule that anybody can flush would
// protect the host's own loopback from the pod. These connections end with the daemon; all others continue without
// it.
//
// # Others on the host
//
// A packet is dropped if any table drops it, whatever ours says. So where a base chain of another table drops
// everything that is forwarded, or that the host receives or sends (by its policy, or by a rule that only matches
// links), rules that accept pods' traffic are inserted at its head: iptables-nft (Docker, ufw), firewalld, hand-made
// tables. Their comment names our table. Rules that drop by address, port or state are assumed to be intended and
// stay in force. Traffic from pods to the node itself is accepted only for replies, the API, DNS and ping. The old
// iptables has no events and is changed by its own tool, iptables-legacy; a firewalld that owns its table by
// firewall-cmd (zone trusted). Trouble names the filters that cannot be opened, and rules that drop a part of the
// traffic; the Node's condition shows them.
//
// Keep listens for changes of any nftables ruleset, and for the loss of the gateway's address or of a route, compares
// and repairs: our table as a whole, our rules in the chains of other tables, and the host's routes and settings that
// pods share. Nothing is polled.
//
// # What survives
//
// Links, routes and rules are in the kernel and stay when the daemon ends, also by kill -9. Setup may be called any
// number of times: it writes the rules as one transaction, with the host ports of the sandboxes for which Restore and
// AddHostPorts were called before. Addresses are not stored here: the runtime's records have them, and Restore marks
// them as used again. The original values of changed settings of the host (ip_forward) are in the state file, written
// before the change, and Teardown restores them.
package network
