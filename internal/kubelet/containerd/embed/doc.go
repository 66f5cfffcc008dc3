// Package embed is containerd itself: assembled from its plugins in this process, with its API on a socket that ctr
// and nerdctl can use too, or reached by the socket of one that is already running.
//
// Who calls it: the runtime starts or connects one and passes it to its subpackages sandbox and image.
//
//	containerd.go  Start, Connect, Stop; what the other rooms need to know of it
//	plugins.go     the plugins, in order; metadata, content store, servers
//	collect.go     garbage collection that may fail
//	exits.go       how containers ended while no daemon ran is not lost
//	shims.go       the shims' processes, also those that containerd does not know
//	log.go         what containerd logs
//
// # What survives
//
// Everything, however the daemon ends: shims and containers are processes of their own and containerd finds them
// again. Its metadata is in bolt databases that are synced to disk on each commit, so they are consistent after a
// power failure, too. A start of a shim that was in progress is ended by the next Start; a shim that it made all the
// same is found by its command line.
package embed
