// Package gc deletes what is left behind: objects whose owners, by metadata.ownerReferences, are gone.
//
// It promises: an object goes only when the API itself, not a cache, has said that none of its owners is
// there any more with the UID it names; an owner that is deleted in the foreground waits for the
// dependents that block it; one that is deleted as orphaning leaves them, without its reference, also
// those that the watches have not shown yet; every deletion is guarded by the version that was judged. An
// owner of a kind that this cluster does not serve is taken to be there.
//
// It reads every kind but Events. It deletes objects and patches their ownerReferences and finalizers.
// roles runs it beside the master. The graph of who owns whom is made from the informers' first lists,
// so a kill -9 takes nothing; deletions that were under way are found by their finalizers.
package gc
