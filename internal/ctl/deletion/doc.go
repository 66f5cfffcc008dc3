// Package deletion deletes objects and waits until they are gone, and knows which of a cluster's objects users made.
//
// It promises that what depends on an object goes with it, and that what the system gives by itself is not counted as
// anybody's. The commands of ctl and the replacing of manifests call it. It keeps no state: an interrupted wait stops
// waiting, not deleting.
package deletion
