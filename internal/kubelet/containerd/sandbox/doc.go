// Package sandbox makes and removes pod sandboxes: namespaces pinned by bind mounts, a link and an address, a tmpfs for
// small files, and a shim that waits for containers. There is no pause container in it.
//
// On disk a sandbox is a directory in run/slots, as earlier versions called them.
//
// Making one takes 25 ms and is the same for every pod, so some are made ahead while the runtime is idle ("warm"):
// a pod then takes one in under a millisecond.
//
// Who calls it: the runtime, which gives sandboxes to pods and writes down which is whose. The network is handed to it
// as an interface.
//
//	sandbox.go     Get, Remove, Whole, List
//	warm.go        the ones made ahead; trim.go takes the shim's program out of memory while it waits
//	namespaces.go  making, pinning and entering namespaces
//	scratch.go     the tmpfs of each sandbox
//	shim.go        starting and ending shims; orphans of an earlier run
//
// # What survives
//
// All of it is processes, mounts and links, and stays when the daemon ends in whatever way. The sandbox's directory is
// made before anything else of it and removed last, so the next start finds what no record names by listing the
// directories and containerd's sandboxes, and shims that neither knows by their command lines.
package sandbox
