// Package scheduler gives every pod without a node one.
//
// It promises: a pod is only bound to a node that passes every filter; the requests of a node's pods never exceed
// what is allocatable, also while bindings are being written; the PodScheduled condition and an Event of a pod that
// fits nowhere say why, per reason and number of nodes, once for each different reason; and it is tried again when
// something changes that could help, at the latest after five minutes.
//
// Package plan decides; it is pure, and its documentation says why it is fast. This package is what surrounds it:
// queue.go orders the pods, observe.go turns the informers' events into calls of the plan, bind.go writes,
// settings.go follows the ClusterConfig, and usage.go, when a strategy needs it, what nodes really use.
//
// One goroutine decides. Informers' handlers only queue events; the goroutine applies all that are queued, decides a
// batch of pods, and looks for events again. It never waits for a write: a pod counts on the chosen node at once, the
// binding is written by a bounded pool, and if that fails the pod is taken off the node and is queued again after a
// back-off. A binding names the pod's uid and the API refuses a second one, so no pod is bound twice, even if this
// package is wrong.
//
// It reads Pods, Nodes, Namespaces and the ClusterConfig, and (min-cpu, min-mem) is told what nodes use; it writes bindings,
// the PodScheduled condition of pods that fit nowhere, and Events. roles runs it beside the master. It keeps nothing:
// after a kill -9 the first lists bring back which pods are bound and which wait, and a binding that was being
// written was either stored or not.
package scheduler
