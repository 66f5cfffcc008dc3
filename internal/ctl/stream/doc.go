// Package stream connects this terminal and this machine's ports to containers: it chooses the container, passes the
// terminal on, and forwards ports.
//
// It promises to restore the terminal when a stream ends. ctl's exec, attach, logs and port-forward call it, and cp to
// choose the container. It keeps no state.
package stream
