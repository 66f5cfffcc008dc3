// Package pods is what every controller of pods needs: how a pod stands, which of several goes first,
// how one is made from a template, and how many are written at once.
//
// It promises: the order of deletion is Kubernetes' own; a pod made from a template has its owner's
// reference from the first moment; every pod made or deleted is an event on its owner; writes begin in
// a small batch that doubles with success, so that a broken template costs a few refusals, not
// hundreds, and fifty good pods cost four rounds.
//
// Controllers use it. Control creates and deletes Pods and writes Events through the client it is given.
// It keeps nothing.
package pods
