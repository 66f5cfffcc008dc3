// Package machine gives a test, a benchmark or a demo a network of its own, like that of a separate machine: the
// program runs again in a new network namespace with an address, a default route and nothing else, so that it does
// not touch the real machine's network and may run beside others. It finds no system bus.
//
// What an interrupted run (a panic, a timeout) leaves behind is removed: processes, mounts, cgroups and files.
//
// wires.go joins namespaces that play several hosts.
//
// Tests' TestMain, bench, hosts and hosttest call it; the daemon does not. The namespace ends with the last process in
// it.
package machine
