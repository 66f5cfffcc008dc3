// Package objects keeps the ConfigMaps and Secrets that the pods of a node name, as they are now.
//
// It promises: an object is watched, by its name, as long as a pod of the node uses it, once however
// many pods do; one that says it is immutable is read once and not watched any more. Who uses an object
// is told of every change, and of its coming and going. An object that is not there is a *Missing, which
// ends by a change and so need not be asked for again.
//
// The kubelet calls it; it reads from client. Nothing of it outlives the process.
package objects
