// Package plan decides which node a pod gets. It is pure: no I/O, no clock, no goroutine.
//
// It promises: Choose names only a node that every filter lets the pod have, and names one whenever
// there is one; what the pods counted on a node ask for never exceeds what the node can give, as long as
// the caller counts (Place) each choice before it asks for the next; a refusal counts the reasons of all
// nodes in Kubernetes' words, and says which filters refused, so that the caller knows which change
// could help. The same calls in the same order give the same answers.
//
// How it stays fast with thousands of nodes:
//
//   - A Cluster is changed by events (SetNode, Place, Remove) and never rebuilt. Nodes stand in one
//     array; quantities are int64 and resources have small numbers.
//   - Pods that are alike for all filters that look at one node alone (requests, selectors, tolerations,
//     host ports) share a class: a heap of the nodes that would take such a pod, the best on top. A change
//     of a node is appended to one log, and a class reads the log when it is asked next: placing one pod
//     costs each class in use one O(log nodes) repair, and the choice is the top of the heap.
//   - What depends on other pods (affinity, anti-affinity, topology spread) is counted per topology
//     domain as pods come and go: one counter for each different term, found through an index by
//     namespace and label, so that a pod touches only the counters that may select it. A pod with such
//     terms walks its class's heap from the best node on, and after a few refusals looks at all nodes
//     once. Nothing is sampled: a node that fits is never missed.
//
// What a pod wishes for itself (preferred terms, ScheduleAnyway, PreferNoSchedule) goes before the
// strategy: the strategy chooses among the nodes that please the pod most. So the first seed system's
// order, anti-affinity first and then its queue of nodes, is the strategy round-robin.
//
// Package scheduler is its user, and tests are. Nothing of it survives a kill -9, nor need it.
package plan
