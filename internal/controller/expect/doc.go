// Package expect remembers which writes of a controller its informer does not show yet, so that a slow watch or a
// lost answer never makes the controller write the same twice.
//
// It promises: Settled is true exactly when the informer shows every write that was recorded for an owner; after it
// was false, the owner is woken as soon as that may have changed. Nothing is counted and nothing times out, unlike in
// Kubernetes (ControllerExpectations in pkg/controller/controller_utils.go): a write is known by its revision, a
// deletion by the object's UID, and both are looked up in the informer. A write that failed but may have taken effect
// is looked up in the API before anything else is done.
//
// Controllers call Settled before they read an owner's dependents, and Wrote, Deleted or Failed after their writes;
// their handlers wake the owner of every object that changes. One owner must not be reconciled twice at the same time
// (package loop ensures that). It is in memory only; after a kill -9 the first list is complete, and nothing is
// expected.
package expect
