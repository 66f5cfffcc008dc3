// Package network is the pods' network of this node: an address and a routed veth per pod, masquerading of what
// leaves the cluster, and host ports.
//
// Who calls it: roles, which builds it, sets it up, keeps it and in the end tears it down, and hands it to the
// container runtime as the interface that the runtime declares: connect a sandbox, disconnect it, publish its
// ports. Of a pod it knows the id of its sandbox, its address and its ports, and nothing of containers. "The host"
// is the network namespace the process was started in, which need not be the machine's.
//
//	network.go    New, Setup, Teardown; the range
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
// needed. 169.254.1.1 itself is an address of the host's lo, for ping and traceroute. The rest of the node's range
// is unreachable: packets to an address that no pod has do not leave by the default route. The host's end speaks
// no IPv6.
//
// Rules live in the nftables table "minik8s-pods-" with four digits of the daemon's own, and their number is fixed;
// what changes are the elements of its sets and maps, one by one:
//
//	spoofed      drops what a pod sends with a source address that is not its own
//	prerouting   dnat by the maps hostports (protocol, port) and hostports-at (address, protocol, port)
//	output       the same, for connections the host itself makes to one of its addresses
//	postrouting  masquerades pods' egress outside their range, and a pod that reaches itself by its host port
//
// A host port on 127.0.0.1 is forwarded in user space by the daemon (TCP and UDP): to route it the kernel would have
// to take packets for 127.0.0.0/8 from a pod's link, and only a rule that somebody can flush would keep the
// pod off the host's own loopback. These connections end with the daemon; all others go on without it.
//
// # Others on the host
//
// A packet is dropped if any table drops it, whatever ours says. So where a base chain of somebody else's drops all
// that is forwarded, or all that the host receives or sends (its policy, or a rule that looks at nothing but
// links), rules that accept pods' traffic are put at its head: iptables-nft (Docker, ufw), firewalld, hand-made
// tables. They name our table in their comment. Rules that drop by address, port or state are taken to be meant;
// they stay in force. What pods send to the node itself is accepted only as answers and for the API, DNS and ping.
// The old iptables has no events and is changed by its own tool, iptables-legacy; a firewalld that owns its table by
// firewall-cmd (zone trusted). Trouble names the filters that cannot be opened, and rules that drop a part, and the Node's condition shows them.
//
// Keep listens for changes of any nftables ruleset, and for the loss of the gateway's address or of a route,
// compares and repairs: our table as a whole, our rules in the chains of others, and what pods share of the host.
// Nothing is polled.
//
// # What survives
//
// Links, routes and rules are the kernel's and stay when the daemon ends, also by kill -9. Setup may be called any
// number of times: it puts the rules in place as one transaction, with the host ports of the sandboxes that Restore
// and AddHostPorts have named before. Addresses are not written down here: the runtime's records hold them, and
// Restore marks them as used again. The host's settings that were changed (ip_forward) are in the state file,
// written before the change, and Teardown sets them back.
package network
