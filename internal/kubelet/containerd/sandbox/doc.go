// Package sandbox makes and removes pod sandboxes: namespaces pinned by bind mounts, a link and an address, and a tmpfs for
// small files. There is no process in it.
//
// On disk a sandbox is a directory in run/slots, the name of earlier versions.
//
// Making one takes 25 ms and is the same for every pod, so some are made in advance while the runtime is idle
// ("warm"): a pod then gets one in under a millisecond.
//
// Who calls it: the runtime, which assigns sandboxes to pods and records that. It gets the network as an interface.
//
//	sandbox.go     Get, Remove, Whole, List
//	warm.go        the ones made in advance
//	namespaces.go  making, pinning and entering namespaces
//	settings.go    a pod's host name and sysctls
//	scratch.go     the tmpfs of each sandbox
//
// # What survives
//
// Everything is mounts and links, and stays however the daemon ends. The sandbox's directory is made before anything else
// of it and removed last. So the next start finds sandboxes without a record by listing the directories.
package sandbox
