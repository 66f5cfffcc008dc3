// Package hosts is a cluster of several machines on one: each host is a network namespace with an address, a default
// route, a data directory and a cgroup of its own, in which the built minik8sd runs as it would on a machine. The
// hosts' links end in one more namespace, which plays the network: a bridge for each subnet, and a router between them.
//
// A Lab can cut a host off (its link stays up, as when a switch fails) in both directions or in one, lose some of its
// packets, kill a daemon, stop it with SIGSTOP, restart it, or set a host up anew. What is to happen is written in
// scenario files, line by line; see Scenario. Package history does it at random while clients are watched.
//
//	lab.go       the network and the hosts in it
//	host.go      one host and its daemon
//	shutdown.go  a machine that shuts down, with a logind of its own
//	loss.go      packets that are lost
//	dial.go      connections from a host, or from the network; route.go: the way of its packets
//	scenario.go  scenario files: reading and playing
//	steps.go     what their lines do
//
// The end-to-end tests and "make demo-cluster" (play/) use it, and nothing of the daemon does. It needs root. Everything
// ends with Close: daemons, pods, cgroups and files; the namespaces end with the process at the latest.
package hosts
