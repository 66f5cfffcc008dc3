// Package drain empties a node, so that it can be stopped: it closes the node to new pods, evicts those that it has, and
// waits until they have ended. What must not be lost unasked is asked for first, as kubectl drain does.
//
// It promises: before anything is evicted, every pod that needs a flag is named, all at once; an eviction that is refused
// for now (429) is asked for again; pods of daemon sets stay. ctl's command drain calls it. It keeps no state: if it is
// interrupted, the node stays closed and evictions go on.
package drain
