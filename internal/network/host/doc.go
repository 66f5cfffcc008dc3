// Package host is the network namespace that the pods' network calls the host: what is read from the kernel about it,
// which of its links and routes are this daemon's own, and its settings, which are saved before they are changed.
//
// Who calls it: package network, and overlay below it, which decide what there should be. It knows no pod and no other
// node. A Host is safe for concurrent use, but for its settings: its caller changes them one after another.
//
//	host.go    a Host, and the marks of what is ours: names of links, protocol and metric of routes
//	kernel.go  lists that are whole, and addresses in the forms of netlink
//	sysctl.go  settings
//	events.go  events about links, settings and addresses
//
// What survives a kill -9: the settings' original values, in the state file, which is written before the first change.
// A mark is made from the daemon's owner alone, so that the next run finds what is its own.
package host
