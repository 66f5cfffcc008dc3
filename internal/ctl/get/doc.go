// Package get shows objects: as the tables that the server lays out or as they are, once or with every change.
//
// It promises that a watch which the server ends goes on where it ended, and that a list of nothing prints nothing. ctl's
// get calls it. It keeps no state.
package get
