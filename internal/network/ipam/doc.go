// Package ipam assigns the addresses of a node's range to pods: each to one pod at a time, and a freed one as late as
// possible. The first two and the last are no pod's; the second is the host's own at the tunnel to other nodes.
//
// Who calls it: package network; overlay asks for the tunnel's address. A Pool is safe for concurrent use.
//
// Nothing of it survives a kill -9: the runtime's records have the pods' addresses, and Reserve marks them again.
package ipam
