// Package events records for people what the parts of minik8s decided: a corev1.Event on the object
// it is about, as `kubectl describe` and `kubectl events` show it.
//
// It promises: recording never blocks and never fails the caller; what repeats is counted on one
// Event instead of written again; many similar messages about one object are combined; one object
// cannot flood the store. Writing happens in Run, one write after the other.
//
// Every part at floor 4 may use it. Nothing survives a kill -9: events that were not written yet
// are lost, and counting starts over with a new Event, as in Kubernetes.
package events
