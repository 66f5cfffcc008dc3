// Package replicaset keeps as many pods of every ReplicaSet and every ReplicationController as it wants.
//
// It promises: pods that match and have no controller are adopted before new ones are created; pods that no longer
// match are released, and replaced; surplus pods are deleted in Kubernetes' order; a slow watch makes it neither
// create nor delete twice; pods that fail at once are replaced after a back-off that grows; the status follows every
// change of a pod.
//
// Both kinds are handled as one type, set: a ReplicationController is read as a ReplicaSet with a plain selector
// (sets.go). Only owner references and Events use the object itself. Each kind has a queue of its own, because names
// may be the same; the informer of the pods is shared.
//
// It reads both kinds and Pods. It writes Pods (creates, deletes, ownerReferences), the status of its sets, and
// Events on them. roles runs it beside the master. It keeps nothing: after a kill -9 the first lists show what there
// is, and missing pods are created.
package replicaset
