// Package plan decides what to do next for a pod. It is pure: no I/O, no goroutine, and no clock: the time is given.
//
// It promises: Decide depends only on the present state (the API's object, the runtime's state, what the worker
// remembers, the time) and never on past events. The same Input always gives the same Decision. Every Action may be
// repeated. An action that is in progress, or that waits for its retry, is not started again. If the decision will
// change with time alone, Decision.Wake says when. A pod ends in stages, and each begins only when the one before is
// done: stop, final status, containers, sandbox, volumes and cgroup, the API's object. Where Kubernetes' kubelet makes
// the same decision, its rule is followed.
//
// The kubelet's worker calls Decide and carries out the actions. Package status makes the pod's status from the same
// Input. Package images returns its ActionError. Nothing of this package survives a kill -9. State may be lost:
// decisions are then repeated, but never wrong. Only back-offs are estimated, from the number of attempts.
//
//	plan.go       Input, Decision, Decide; what a pod that should run needs
//	action.go     the actions
//	admit.go      whether a pod may run on this node at all
//	start.go      which containers are started now
//	restart.go    whether a container that has exited runs again
//	backoff.go    when it does (CrashLoopBackOff)
//	retry.go      when an action that failed is tried again
//	init.go       init containers and sidecars
//	ephemeral.go  ephemeral containers and their targets
//	probes.go     which probes run now; results from answers
//	health.go     results of probes and hooks; which containers are killed because of them
//	volumes.go    volumes that change with other objects
//	terminate.go  why and how a pod ends
//	cleanup.go    containers that are removed or stopped while the pod runs
//	observed.go   reads the runtime's state
//	state.go      what a worker remembers
package plan
