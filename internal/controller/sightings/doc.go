// Package sightings says when something happened, by this master's own clock, of which the object only says when it was by
// the clock of the master that led then. Tolerations of taints and the deadlines of Jobs are counted from such times. A
// master that has just begun to lead would count them too long or too short where the two clocks differ.
//
// A Sightings follows Nodes and Jobs on every master, also on one that stands by, and notes what it sees happen with a time
// that is not about now. Where clocks agree it holds nothing. Of what happened before this daemon started it can only know
// what the object says, but that nothing happens later than it is seen.
//
// It promises that the same time of the same object is always answered by the same moment, as long as the daemon runs. roles
// makes and runs one per master; the controllers that count from such times ask it. Nothing survives a restart.
package sightings
