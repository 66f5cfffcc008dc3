// Package replicaset keeps the number of pods of every ReplicaSet at the number wanted.
//
// It promises: pods that match and are nobody's are adopted before new ones are made; pods that cease to
// match are released, and replaced; too many are deleted in Kubernetes' order; a slow watch makes it
// neither create nor delete twice; pods that fail as soon as they are made are made again more and more
// slowly; the status follows every change of a pod.
//
// It reads ReplicaSets and Pods. It writes Pods (creates, deletes, ownerReferences), the status of
// ReplicaSets, and Events on them. roles runs it beside the master. It keeps nothing: after a kill -9
// the first lists say what is there, and what is missing is made.
package replicaset
