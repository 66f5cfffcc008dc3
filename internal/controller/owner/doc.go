// Package owner says which objects belong to a controller: by ownerReferences, by selectors, and by
// adopting and releasing where the two differ.
//
// It promises: an object with a controller is never taken over; an object is adopted only after the API itself, not a
// cache, has said that the owner is still there, with the same UID, and not being deleted; adoption and release are
// guarded by the object's own UID.
//
// Controllers use it. Claim writes metadata.ownerReferences and finalizers of dependents; Index reads an informer.
// Nothing of it survives a kill -9: the objects themselves record their owners.
package owner
