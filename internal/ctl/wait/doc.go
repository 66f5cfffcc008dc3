// Package wait waits for what a command began: until pods are ready, until an object is gone, until a rollout is done. It
// says meanwhile how it goes.
//
// It promises that nothing it waits for is changed, and that a wait which comes to no good end says what to type next. The
// commands of ctl call it. It keeps no state: an interrupted wait changes nothing.
package wait
