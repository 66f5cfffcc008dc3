// Package scheduler gives every pod without a node one.
//
// It promises: a pod is only bound to a node that every filter lets it have; what a node's pods ask for
// never exceeds what it can give, also while bindings are on their way; a pod that fits nowhere says why,
// per reason and number of nodes, in its PodScheduled condition and an Event, once for each different
// reason; and it is tried again when something changes that could help, at the latest after five minutes.
//
// Package plan decides, purely, and explains how it is fast. Here is what surrounds it: queue.go is who
// comes next, observe.go turns the informers' news into calls of the plan, bind.go writes, settings.go
// follows the ClusterConfig and usage.go, when a strategy asks for it, what nodes really use.
//
// One goroutine decides. Informers' handlers only note; the goroutine takes all notes at once, decides a
// batch of pods, looks for notes again. It never waits for a write: a chosen pod counts on its node at
// once, the binding is written by a bounded pool, and if that fails the pod is taken off again and comes
// back after a pause. A binding names the pod's uid and the API refuses a second one, so that no pod is
// bound twice, whatever this package has misunderstood.
//
// It reads Pods, Nodes, Namespaces, the ClusterConfig and (min-cpu, min-mem) the nodes' Leases; it writes
// bindings, the PodScheduled condition of pods that fit nowhere, and Events. roles runs it beside the
// master. It keeps nothing: after a kill -9 the first lists bring back what is bound and what waits, and
// bindings that were on their way have either been written or not.
package scheduler
