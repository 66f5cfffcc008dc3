// Package informer keeps a part's view of one kind in memory.
//
// It promises: Get and List answer from memory; each handler sees every change of an object once, in order, also
// changes that happened while a broken watch was opened again. Package reflector recovers the watch: where it cannot
// resume, everything is listed again and handlers get the difference. An informer never fails silently: Run returns
// only when ctx ends. Get, List, the indexes and Revision always agree: once Revision has reached that of a write,
// all of them show the write.
//
// Handlers must not do work, only queue what is to be done (a work queue). The objects are shared: never change them.
// Any part may use it, over either client. Nothing of it survives a kill -9, and nothing needs to.
//
// Each part has informers of its own, also where several parts of a process follow one kind. What that costs is one
// watch and, measured with 10,000 pods, 76 bytes of heap per object: the objects themselves are the registry's, decoded
// once per process. Seven parts follow pods, so six views could be saved: about 4.5 MB at 10,000 pods, nothing that
// shows in a cluster at rest. What it buys: a part reads with its own rights (registry's rules are the whole list of
// who reads what), it starts, fails and is started again by itself, and a handler that panics ends one part and not
// all that share the view.
package informer
