// Package status makes a pod's status from what is known of it. It is pure.
//
// It promises: the status is true, in Kubernetes' words (phases, reasons, conditions, their order); the same Input
// gives the same status, and a status made from one that was written is the same again, so that nothing is written
// twice; what others own in the status is kept; how a finished pod ended never changes. Where Kubernetes' kubelet
// makes the same, its rule is followed (pkg/kubelet/kubelet_pods.go, pkg/kubelet/status/generate.go).
//
// The kubelet's worker calls it, before each decision. It reads the same plan.Input as the decision does, so
// that what is shown and what is done agree. Nothing of it survives a kill -9; Restore reads back from the
// API's status what the runtime has lost with a reboot.
//
//	status.go      the status as a whole
//	phase.go       the pod's phase
//	conditions.go  the conditions that are the kubelet's
//	containers.go  one status per container: how it runs, how it ended
//	waiting.go     why a container waits: CrashLoopBackOff, ImagePullBackOff
//	restore.go     what the status knows of containers after a reboot
package status
