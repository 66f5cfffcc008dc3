// Package supervise starts, watches and stops the parts of the daemon.
//
// It promises: a part starts when those that it names are ready (After), never after a sleep, and whatever the order of
// the list; a Must part that ends takes the whole group down with its error; a Keep part that ends,
// fails or panics is started again with back-off, and counted; when the group is told to stop it
// stops each part before those it came after, within a bound, and names the one that hung. A part that ends
// leaves nothing behind: the context of its run ends with it, and a panic in one of its Tasks is a panic
// of the part.
//
// It knows nothing of minik8s; roles and tests call it. Nothing of it survives a kill -9.
package supervise
