// Package namespace empties namespaces that are being deleted, and lets them go when they are empty.
//
// It promises: pods go first and everything else when they have gone, as in Kubernetes; the finalizer
// "kubernetes" stays until a list of every kind came back empty; and the conditions of a namespace that
// does not go say what it waits for: which kinds, which finalizers, which error.
//
// It keeps no view of what is in namespaces. A round lists every kind once, deletes what it finds, many
// at a time, and lists those kinds again. What is left then is on its way, and watched until it is gone:
// a namespace that waits costs one watch for each kind that still has something, and a look now and then
// that brings its conditions up to date.
//
// It reads Namespaces and every namespaced kind; it deletes what is in a terminating namespace and
// writes namespaces/status and namespaces/finalize. roles runs it beside the master. After a kill -9 the
// first list finds the namespaces that are still terminating.
package namespace
