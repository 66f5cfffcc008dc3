// Package dns answers the DNS questions of this node's pods: for the names of Services and their endpoints, as Kubernetes
// specifies them (kubernetes/dns docs/specification.md, version 1.1.0), from the same views that the proxy reads, and for the hosts of DNS objects; every
// other question goes to the servers that the machine itself asks, and the answers are kept as long as they say.
//
// It is a chain of CoreDNS' plugins: cluster, which is ours, then CoreDNS' cache and forward. Its server and its plugin
// kubernetes are not used: the first is configured by files, the second holds a copy of all objects for itself.
//
// Who calls it: roles, as a part on every node with pods. It needs the Services, EndpointSlices and DNS objects of all namespaces (as
// informers, which it runs), and somebody who gives the machine the address at which it answers: that of the Service
// kube-system/kube-dns, which every node answers for its own pods. So a question never leaves the node for another one, and
// goes by no rule of the packet filter. It says so by its label service.kubernetes.io/service-proxy-name: without that label it is a Service as
// any other, whose pods are the cluster's DNS, and this one does not answer any more.
//
//	names      what a name asks for; pure
//	records.go Services and endpoints by name and by address
//	cluster.go the plugin that answers for them
//	forward.go the plugin for the rest: the machine's own servers, found anew when its file changes
//	server.go  the sockets, and what every answer must have
//	dns.go     the part: follows the address
//
// It promises: an answer is that of a complete list of Services, or, while there is none yet, "try again" (SERVFAIL). While
// no master can be reached it answers with what it knew last. A client that floods it costs it no more than a bound, and
// does not keep it from answering others for the cluster's names. Nothing runs while nobody asks.
//
// Nothing of it survives a kill -9: until the daemon is back, names are not resolved. Then it answers at once at the address
// that the machine still has: for others' names, and, when it can read them, for the cluster's.
package dns
