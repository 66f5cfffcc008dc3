// Package proxy is the data path of Services on this node: it keeps one nftables table that leads connections to a Service's
// addresses, and to its node ports, to the endpoints in turn.
//
// Who calls it: roles, as a part on every node that has pods. It needs the Services and EndpointSlices of all namespaces (as
// informers, which it runs), the name of the pods' links and what this node is; SetNode tells it when the node changes. For
// `clean` there is Teardown. Which rules there are, and why, is in README.md.
//
//	plan      what this node does with a Service, without any nftables; pure
//	rules.go  the table: its frame, and the piece of each Service
//	state.go  all Services as they are in the table; a change gives the edit that the kernel needs
//	proxy.go  the part: follows the kinds, writes the edits, repairs what others change
//	flows.go  UDP flows to endpoints that are gone
//	inspect.go  what the kernel does with a Service, beside what it should
//	doors.go  sockets of our own: node ports on loopback, ports for a load balancer's health checks
//
// It promises: each change of a Service or its endpoints is one transaction of the kernel, which touches only what changed;
// the first is made at once, and those that arrive meanwhile are made together. A connection is never sent to an endpoint
// that the kernel was told is gone. When it starts, or somebody else has changed the table, it compares all of it and
// changes what differs. Until both kinds have been listed it changes nothing.
//
// # What survives
//
// The table is the kernel's and stays when the daemon ends, also by kill -9, and so do the clients that stay with their
// endpoints and the connections. Only what goes by loopback ends with the daemon. Nothing is written to disk: names of
// chains, sets and elements follow from the Services alone, so the next run finds its own again.
package proxy
