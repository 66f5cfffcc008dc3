// Package client is the one way to objects: every part of minik8s reads and writes them through its Interface only.
//
// It promises Kubernetes' semantics: reads are consistent with every write that was acknowledged before them, updates
// are guarded by resourceVersion (a stale one is a Conflict), a watch from the resourceVersion of a list misses
// nothing and repeats nothing, and when the history is compacted the watch ends with Expired and the caller lists
// again. Errors are apimachinery's StatusError, so apierrors.IsNotFound, IsConflict and IsInvalid work on all of
// them.
//
// Two implementations: local (in the process of the master, over the registry; objects are SHARED and must not be
// changed, DeepCopy first) and remote (HTTP). clienttest is the contract that both pass; faulty wraps either and
// injects faults for tests.
//
// It has no state: a kill -9 loses only the open watches.
package client
