// Package pods is what every controller of pods needs: a pod's state, the order of deletion, a pod from a template,
// and creating and deleting many.
//
// It promises: the order of deletion is Kubernetes'; a pod made from a template is created with its owner's
// reference; every creation and deletion is an Event on the owner; writes begin in a small batch that doubles with
// success, so that a broken template costs a few refusals, not hundreds, and fifty good pods cost four rounds.
//
// Controllers use it. Control creates and deletes Pods and writes Events through the client it is given.
// It keeps nothing.
package pods
