// Package why explains in one screen why an object is not well, and what to type next.
//
// It promises: Explain asks the API for what it needs (look.go), and the explanation follows from that alone: explain
// asks nobody, so it is tested on tables. What cannot be read is left out.
//
// Its files: why.go has the page and what is common; pod.go, container.go, killed.go explain a pod that has a node,
// unscheduled.go and neighbours.go one that has none; workload.go, rollout.go and blame.go what keeps pods; node.go a
// node; leaving.go what is being deleted; conditions.go what every kind has.
//
// ctl calls it, and prints what it says. It keeps no state.
package why
