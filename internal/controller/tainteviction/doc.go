// Package tainteviction evicts pods from nodes with NoExecute taints that they do not tolerate, or no longer
// tolerate: a node that a person taints, or a silent one. It follows Kubernetes (pkg/controller/tainteviction).
//
// It promises: a pod is deleted when its shortest toleration ends, counted from when the taint was added, and stays
// if the taint is removed before that. It reads Pods and Nodes; it writes the DisruptionTarget condition of a pod and
// deletes it. It sleeps until the next toleration ends; it does not poll. roles runs it beside the master. It keeps
// nothing: after a kill -9 the first lists show the taints again; a taint without a time counts from then.
package tainteviction
