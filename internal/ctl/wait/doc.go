// Package wait waits for the result of a command: until pods are ready, an object is gone, or a rollout is done. It
// shows the progress while it waits.
//
// It promises to change nothing, and to say what to type next if the wait fails. The commands of ctl call it. It keeps
// no state: an interrupted wait changes nothing.
package wait
