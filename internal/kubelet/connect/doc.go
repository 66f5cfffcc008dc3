// Package connect is the pods of a node as clients reach them: which there are, their logs, exec, attach and
// port-forward.
//
// Who calls it: each pod's worker publishes a Snapshot of its pod; the kubelet's server asks the rest, with the names in
// a request. A request never waits for a worker. It finds the container in the last snapshot, checks what was asked, and
// connects to the runtime or opens the log.
//
//	pods.go      Manager: the pods by name; Snapshot, which a worker publishes and drops
//	exec.go      exec, attach, port-forward
//	logs.go      logs: which attempt's file, and until when it is followed
//
// It promises API errors as Kubernetes words them: NotFound for a pod that is not here, BadRequest that says what is
// wrong with the container. A log that is followed ends when its container has ended or its pod is dropped.
//
// Nothing here survives the daemon: the workers publish their pods again at the next start.
package connect
