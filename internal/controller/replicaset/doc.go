// Package replicaset keeps the number of pods of every ReplicaSet and every ReplicationController at the
// number wanted.
//
// It promises: pods that match and are nobody's are adopted before new ones are made; pods that cease to
// match are released, and replaced; too many are deleted in Kubernetes' order; a slow watch makes it
// neither create nor delete twice; pods that fail as soon as they are made are made again more and more
// slowly; the status follows every change of a pod.
//
// Both kinds are one thing to it, a set: a ReplicationController is read as a ReplicaSet with a plain
// selector (sets.go), and only what pods and events name as their owner is the object itself. A kind has a
// queue of its own, since names may be the same; the view of the pods is shared.
//
// It reads both kinds and Pods. It writes Pods (creates, deletes, ownerReferences), the status of its sets,
// and Events on them. roles runs it beside the master. It keeps nothing: after a kill -9 the first lists say
// what is there, and what is missing is made.
package replicaset
