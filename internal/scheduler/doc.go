// Package scheduler gives every pod without a node one.
//
// It promises: a pod is only bound to a node that every filter lets it have; what a node's pods ask
// for never exceeds what it can give, also while bindings are on their way; a pod that fits nowhere
// says why, per reason and number of nodes, in its PodScheduled condition and an Event, and is tried
// again when something changes that could help.
//
// filter.go is pure: a pod and a node to reasons. state.go follows the cluster by events; scheduler.go
// is the loop. It reads Pods and Nodes; it writes bindings and the PodScheduled condition of pods that
// fit nowhere. roles runs it beside the master. It keeps nothing: after a kill -9 the first lists bring
// back what is bound and what waits.
package scheduler
