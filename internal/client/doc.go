// Package client is the waist of minik8s: every part of the system reads and writes objects through
// its Interface, and nothing else.
//
// It promises Kubernetes' semantics: reads are consistent with every write that was acknowledged
// before them, updates are guarded by resourceVersion (a stale one is a Conflict), a watch from the
// resourceVersion of a list misses nothing and repeats nothing, and when the history is gone the
// watch ends with Expired and the caller lists again. Errors are apimachinery's StatusError, so
// apierrors.IsNotFound, IsConflict and IsInvalid work on all of them.
//
// Two implementations: local (in the process of the master, over the registry; objects are SHARED
// and must not be changed, DeepCopy first) and remote (HTTP). clienttest is the contract that both
// pass; faulty wraps either and drops, delays and repeats on purpose.
//
// It holds no state of its own: nothing is lost by a kill -9 but the watches that were open.
package client
