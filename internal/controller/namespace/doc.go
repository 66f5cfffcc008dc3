// Package namespace empties namespaces that are being deleted, and removes their finalizer when they are empty.
//
// It promises: pods are deleted first and everything else after them, as in Kubernetes; the finalizer "kubernetes"
// stays until the list of every kind was empty; and the conditions of a namespace that is not yet empty say what it
// waits for: which kinds, which finalizers, which error.
//
// It keeps no view of what is in namespaces. A round lists every kind once, deletes what it finds, many at a time,
// and lists those kinds again. What is left then is being deleted, and is watched until it is: a waiting namespace
// costs one watch for each kind that still has objects, and a round now and then that updates its conditions.
//
// It reads Namespaces and every namespaced kind; it deletes what is in a terminating namespace and
// writes namespaces/status and namespaces/finalize. roles runs it beside the master. After a kill -9 the
// first list finds the namespaces that are still terminating.
package namespace
