// Package hosttest plays several hosts on one machine, for tests and benchmarks of the network between them: each is
// this program once more, in a network namespace of its own, with a Network and pods that are namespaces. Bridges in
// the caller's namespace are the wires between them, as package machine makes them. Package hosts plays machines with
// the whole daemon, in threads of one process; here a host has to be a process, because a Network takes its own for the
// host.
//
// A program that uses it calls Main first of all. A host ends with the program, and its namespaces with it.
//
//	lab.go     the caller's side: wires and hosts
//	host.go    what a host does when it is asked, by net/rpc over its standard input and output
//	traffic.go servers and clients in its namespaces
package hosttest
