// Package peers tells the pods' network which other nodes there are: it follows the Peers, which are the
// Nodes in short.
//
// Who calls it: roles, once the network is set up and the API can be reached, with an informer of the Peers that others on
// the machine follow too. It promises that the network hears of every node that comes, goes, or changes its address or range,
// and of nothing else: a heartbeat causes no work. The network is told only complete lists, the first when all Nodes have
// been listed, so that the routes of an earlier run stay until then.
//
// Nothing of it survives a kill -9, and nothing needs to: the routes are in the kernel, and the Nodes in the API.
package peers
