// Package target reads the arguments of a command: kinds in any of their spellings, objects by name, NAMESPACE/NAME or
// UID, or all objects that match a selector.
//
// It promises that an error about something unknown suggests what may have been meant. The commands of ctl call it, and
// packages that take such arguments. It keeps no state.
package target
