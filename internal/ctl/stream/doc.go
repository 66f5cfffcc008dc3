// Package stream connects this terminal and this machine's ports to containers: whose streams are meant, how a terminal is
// handed over, how ports are forwarded.
//
// It promises that a terminal is as it was when a stream ends. ctl's exec, attach, logs and port-forward call it, and cp for
// the choice of a container. It keeps no state.
package stream
