// Package plan decides which node a pod gets. It is pure: no I/O, no clock, no goroutine.
//
// It promises: Choose only returns a node that passes every filter, and returns one whenever there is one. The requests
// of the pods counted on a node never exceed what the node can give, as long as the caller counts (Place) each choice
// before it asks for the next. A refusal counts the reasons of all nodes in Kubernetes' words, and says which filters
// refused, so that the caller knows which changes could help. The same calls in the same order give the same answers.
//
// How it stays fast with thousands of nodes:
//
//   - A Cluster is changed by events (SetNode, Place, Remove) and never rebuilt. Nodes are in one
//     array; quantities are int64 and resources have small numbers.
//   - Some filters look at one node alone: requests, selectors, tolerations, host ports. Pods that are equal
//     for all of these share a class: a heap of the nodes that would take such a pod, the best on top. A change
//     of a node is appended to one log, and a class reads the log at its next use. Placing one pod
//     costs each class in use one O(log nodes) repair, and the choice is the top of the heap.
//   - Affinity, anti-affinity and topology spread depend on other pods. They are counted per topology
//     domain as pods come and go: one counter for each different term, found through an index by
//     namespace and label, so that a pod touches only the counters that may select it. For a pod with such
//     terms, the nodes of its class are tried from the best on; after a few refusals all nodes are
//     scanned once. Nothing is sampled: a node that fits is never missed.
//
// A pod's own preferences (preferred terms, ScheduleAnyway, PreferNoSchedule) come before the strategy: the strategy
// chooses among the nodes that the pod prefers most. The strategy round-robin therefore gives the order of the first
// seed system: anti-affinity first, then its queue of nodes.
//
// Package scheduler and tests use it. It stores nothing, so a kill -9 loses nothing that is needed.
package plan
