// Package announce answers, on the links of this host, for IPv4 addresses that the host does not have: whoever asks by ARP who has
// one is told this host's hardware address, and when an address becomes ours all neighbours are told so unasked, so that
// they turn at once from who had it before. What then comes for the address is led on by others (the rules of Services).
//
// Who calls it: roles, which knows from the Services for which addresses of load balancers this node is to answer. It knows no Service.
// That only one host answers for an address is its callers' affair.
//
//	arp.go       packets, as data
//	announcer.go sockets and times
//
// It promises: an address is answered for on every link of Ethernet that has a network with it, from the moment that Set is told of it
// until it is told otherwise or Run ends; after a kill -9 nobody answers any more, which is what a neighbour has to see. A
// link that comes late or is made anew counts from when it has its address. There
// is a socket only while there is an address to answer for. It keeps nothing.
package announce
