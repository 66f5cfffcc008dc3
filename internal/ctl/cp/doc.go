// Package cp copies files between this machine and a container, by the container's tar.
//
// It promises that nothing is written outside of the place that was named, whatever the container's archive says. ctl's cp
// calls it. It keeps no state: a copy that was interrupted leaves what has arrived.
package cp
