// Package conntrack reads and ends connections that the kernel tracks. The kernel selects them by protocol before it copies
// them, so that the many of TCP cost nothing where those of UDP are asked for.
//
// Who calls it: proxy, for UDP flows to endpoints that are gone, and the kubelet's server, which
// says to which endpoint a connection went. It knows nothing of Services. The calling thread's network
// namespace is the one that is read and changed. Nothing of it survives the process.
package conntrack
