// Package gc is the garbage collector: it deletes objects whose owners, by metadata.ownerReferences, are deleted.
//
// It promises: an object is deleted only when the API itself, not a cache, has said that none of its owners exists
// any more with the UID in the reference; an owner that is deleted in the foreground waits for the dependents that
// block it; one that is deleted with the policy Orphan keeps its dependents, without the reference, also those that
// the watches have not shown yet; every deletion is guarded by the resourceVersion that was decided on. An owner of a
// kind that this cluster does not serve is assumed to exist.
//
// It reads every kind but Events and IPAddresses. It deletes objects and patches their ownerReferences and finalizers. roles runs it
// beside the master. The graph of owners is made from the informers' first lists, so a kill -9 loses nothing;
// deletions that were under way are found by their finalizers.
package gc
