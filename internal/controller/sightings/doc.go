// Package sightings says when something happened, by this master's own clock, of which the object only says when it was by
// another machine's clock: that of the master that led then, or of the pod's node. Tolerations of taints, the deadlines of Jobs
// and minReadySeconds are counted from such times, and would be too long or too short where the two clocks differ.
//
// A Sightings follows Nodes and Jobs on every master, also on one that stands by, and notes what it sees happen with a time
// that is not about now. Where clocks agree it holds nothing. Of what happened before this daemon started it can only know
// what the object says, but that nothing happens later than it is seen. Pods are noted on the leading master alone, by the
// controllers that have them: standing by would take a copy of them all.
//
// It promises that the same time of the same object is always answered by the same moment, as long as the daemon runs. roles
// makes and runs one per master; the controllers that count from such times ask it. Nothing survives a restart.
package sightings
