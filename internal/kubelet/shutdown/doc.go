// Package shutdown ends the node's pods before the machine shuts down, as Kubernetes' graceful node shutdown does
// (KEP-2000, pkg/kubelet/nodeshutdown).
//
// It promises: from the moment that the machine says it shuts down, the Node is not ready, no new pod is started, and
// every pod is ended within its own grace period, but within that of its group: critical pods (by their priority) last,
// in Periods.Critical, all others before them, in what is left of Periods.All. The machine waits for that, as long as it
// grants: where that is less than was asked for, both periods shrink alike, which is logged. It goes on as soon as the
// last pod has ended and the API knows. A shutdown that is called off makes the Node ready again; pods that have ended
// stay so. An ordinary end of the daemon is no shutdown and ends no pod.
//
// The kubelet calls it, and is called by it as Node; package logind is behind Conn. Where there is no logind, Run ends at
// once. Otherwise it waits for the machine's word and does nothing else.
//
//	plan.go    which pods in which order, and how long; pure
//	manager.go the connection, the lock, and the end of the pods
//
// Nothing of it survives a kill -9. The lock is the kernel's to release then; a daemon that starts again in the middle
// of a shutdown is told so, and ends the pods that still run.
package shutdown
