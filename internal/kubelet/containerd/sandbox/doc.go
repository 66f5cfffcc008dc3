// Package sandbox makes and removes pod sandboxes: namespaces pinned by bind mounts, a link and an address, a tmpfs for
// small files, and a shim that waits for containers. There is no pause container in it.
//
// On disk a sandbox is a directory in run/slots, the name of earlier versions.
//
// Making one takes 25 ms and is the same for every pod, so some are made in advance while the runtime is idle
// ("warm"): a pod then gets one in under a millisecond.
//
// Who calls it: the runtime, which assigns sandboxes to pods and records that. It gets the network as an interface.
//
//	sandbox.go     Get, Remove, Whole, List
//	warm.go        the ones made in advance; trim.go pages a waiting shim's program out
//	namespaces.go  making, pinning and entering namespaces
//	settings.go    a pod's host name and sysctls
//	scratch.go     the tmpfs of each sandbox
//	shim.go        starting and ending shims; orphans of an earlier run
//
// # What survives
//
// Everything is processes, mounts and links, and stays however the daemon ends. The sandbox's directory is made
// before anything else of it and removed last. So the next start finds sandboxes without a record by listing the
// directories and containerd's sandboxes, and other shims by their command lines.
package sandbox
