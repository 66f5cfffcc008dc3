// Package why explains on one screen why an object is not well, and what to type next.
//
// It promises: Explain asks the API for what it needs (look.go), and explain makes the explanation from that alone.
// explain sends no requests, so it is tested with tables. What cannot be read is left out.
//
// Its files: why.go has the explanation and what is common; pod.go, container.go, killed.go explain a pod that has a
// node, unscheduled.go and neighbours.go one that has none; workload.go, rollout.go and blame.go explain workloads;
// service.go, servicepods.go and servicekernel.go a Service (looked at by lookservice.go); node.go a node; leaving.go an object that is being deleted; conditions.go conditions of any kind.
//
// ctl calls it and prints the result. It keeps no state.
package why
