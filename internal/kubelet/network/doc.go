// Package network gives pods their addresses and joins them to the node: a routed veth per pod,
// masquerading of what leaves the cluster, and host ports.
//
// Who calls it: kubelet/containerd, when it makes and removes sandboxes. "The host" is the network
// namespace the process was started in, which need not be the machine's.
//
// # The shape of it
//
// A pod has eth0 with its address as a /32 and a default route by 169.254.1.1. The other end, in
// the host's namespace, is named by the daemon and the pod's slot ("mk" and twelve digits) and carries a /32 route to the pod.
// Both ends know the other's hardware address (a permanent neighbour entry), so no ARP is spoken
// and no bridge is needed. 169.254.1.1 itself is an address of the host's lo, for ping and traceroute.
//
// Rules live in the nftables table "minik8s-pods-" with four digits of the daemon's own, and their number is fixed; what changes are the
// elements of its sets and maps, one by one:
//
//	guard        drops what comes from outside for 127.0.0.0/8, as route_localnet lets it in
//	prerouting   dnat by the maps hostports (protocol, port) and hostports-at (address, protocol, port)
//	output       the same, for connections the host itself makes, also to 127.0.0.1
//	postrouting  masquerades pods' egress outside the cluster's range, a pod that reaches
//	             itself by its host port, and connections from 127.0.0.1 to a pod
//
// # What survives
//
// Links, routes and rules are the kernel's and stay when the daemon ends. Setup may be called any
// number of times: it puts the rules in place as one transaction and keeps the elements of pods that
// Restore has named. Addresses are not written down here: the runtime's records name them, and Restore
// takes them out of circulation again.
package network
