// Package objects has the present state of the ConfigMaps and Secrets that the pods of a node use, as Kubernetes'
// watch-based manager does (pkg/kubelet/util/manager).
//
// It promises: an object is watched, by its name, as long as a pod of the node uses it, once for all its users; an
// immutable one is read once and then not watched. Users of an object are notified of every change, creation and
// deletion. An object that does not exist is a *Missing; its creation is a change, so retries are not needed.
//
// The kubelet calls it; it reads from client. Nothing of it outlives the process.
package objects
