// Package podgc removes pods that no other controller removes: finished ones beyond a threshold, the oldest first,
// and those whose Node is deleted. It follows Kubernetes (pkg/controller/podgc).
//
// It promises: a pod of a deleted Node is marked Failed before it is deleted, so that its Job counts it; a missing
// Node is looked up once more in the API, after a pause, before its pods are deleted. It sleeps until something
// changes; it does not poll.
//
// It reads Pods and Nodes; it deletes Pods and writes the status of those it deletes. roles runs it beside the
// master. It keeps only the time of the pause.
package podgc
