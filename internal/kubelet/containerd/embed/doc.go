// Package embed is containerd itself: assembled from its plugins in this process, with its API on a socket that ctr
// and nerdctl can use too, or reached by the socket of one that is already running.
//
// Who calls it: the runtime starts or connects one and passes it to its subpackages.
//
//	containerd.go  Start, Connect, Stop; what the other rooms need to know of it
//	plugins.go     the plugins, in order; metadata, content store, server
//	collect.go     garbage collection that may fail
//	log.go         what containerd logs
//
// Tasks are run by package task, without containerd's shims.
//
// # What survives
//
// Everything, however the daemon ends: containers and their keepers are processes of their own, which package task finds
// again. containerd's metadata is in bolt databases that are synced to disk on each commit, so they are consistent after a
// power failure, too.
package embed
