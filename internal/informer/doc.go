// Package informer keeps a part's view of one kind in memory.
//
// It promises: Get and List answer from memory; each handler sees every change of an object once, in order, also
// changes that happened while a broken watch was opened again. Package reflector recovers the watch: where it cannot
// resume, everything is listed again and handlers get the difference. An informer never fails silently: Run returns
// when ctx ends, or with a handler's panic. Get, List, the indexes and Revision always agree: once Revision has
// reached that of a write, all of them show the write; after Run they stay as they were. What was written or deleted
// before Run is shown, or gone, when Run calls ready.
//
// Parts of one process that are given the same Views share one watch and one map for each kind and selection, as
// Kubernetes' controllers share their informers (client-go tools/cache/shared_informer.go). A part sees a kind only if
// its own client may list it: it lists the kind once, with its own rights, before it joins. Parts start, fail and start
// again independently: a handler that panics ends its own informer, and the last informer that leaves closes the
// watch.
//
// Handlers must not do work, only queue what is to be done (a work queue): those of one view are called one after the
// other, so a slow one delays all parts that share the view. The objects are shared: never change them. Any part may
// use it, over either client. Nothing of it survives a kill -9, and nothing needs to.
//
// Its files:
//
//	informer.go   what a part holds: handlers, Get, List
//	views.go      the views of a process, which come with the first informer and go with the last
//	view.go       one view: a watch, a map, and the informers that follow it
package informer
