// Package target reads what the arguments of a command name: kinds in any of their spellings, objects by name,
// NAMESPACE/NAME or UID, or all that a selector chooses.
//
// It promises that what is not there is answered with what may have been meant. The commands of ctl call it, and the rooms
// that take such arguments. It keeps no state.
package target
