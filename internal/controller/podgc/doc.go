// Package podgc removes pods that nobody else will: finished ones beyond a threshold, the oldest first,
// and those whose node is gone for good.
//
// It promises: a pod of a lost node is marked Failed before it is deleted, so that its Job counts it; a
// node that is missing is asked for once more, after a pause, before its pods go. It sleeps until
// something has happened: nothing ticks.
//
// It reads Pods and Nodes; it deletes Pods and writes the status of those it deletes. roles runs it
// beside the master. It keeps nothing but the pause.
package podgc
