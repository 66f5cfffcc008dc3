// Package get shows objects: as tables from the server or as whole objects, once or with every change.
//
// It promises that when the server ends a watch, the watch resumes where it ended, and that an empty list prints
// nothing to the output. ctl's get calls it. It keeps no state.
package get
