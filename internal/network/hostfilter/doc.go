// Package hostfilter has the host's other packet filters let pods' traffic through: those of ufw, firewalld, Docker,
// iptables and tables written by hand.
//
// Who calls it: package network, with the traffic that is to pass, whenever that or another filter has changed; it
// serialises the calls.
//
//	plan.go    which chains to open, and for what; pure
//	filters.go Filters, which opens and closes them and says what still stops traffic
//	tools.go   filters that only their own tool can change
//
// A packet is dropped if any table drops it, whatever ours says. So where a base chain of another table drops
// everything that is forwarded, or that the host receives or sends (by its policy, or by a rule that only matches
// links), rules that accept pods' traffic are inserted at its head: iptables-nft (Docker, ufw), firewalld, hand-made
// tables. Their comment names our table. Rules that drop by address, port or state are assumed to be intended and
// stay in force. Traffic from pods to the node itself is accepted only for replies, the API, DNS and ping, from peers'
// pods only for replies and ping; and the tunnel's UDP port is opened, because our own table drops strangers. The old
// iptables has no events and is changed by its own tool, iptables-legacy; a firewalld that owns its table by
// firewall-cmd (zone trusted). Trouble names the filters that cannot be opened, and rules that drop a part of the
// traffic.
//
// The rules are in the kernel and stay when the daemon ends, also by kill -9; by their comments the next run finds them
// and Close removes them.
package hostfilter
