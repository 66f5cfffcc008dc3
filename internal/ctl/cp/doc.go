// Package cp copies files between this machine and a container, with the container's tar.
//
// It promises never to write outside of the given path, whatever the container's archive contains. ctl's cp calls it.
// It keeps no state: after an interrupted copy, the files that have arrived stay.
package cp
