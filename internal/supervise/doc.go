// Package supervise starts, watches and stops the parts of the daemon.
//
// It promises: parts start in the order of the list, each when the one before is ready, never after
// a sleep; a Must part that ends takes the whole group down with its error; a Keep part that ends,
// fails or panics is started again with back-off, and counted; when the group is told to stop it
// stops the parts in reverse order, each within a bound, and names the one that hung. A part that ends
// leaves nothing behind: the context of its run ends with it, and a panic in one of its Tasks is a panic
// of the part.
//
// It knows nothing of minik8s; roles and tests call it. Nothing of it survives a kill -9.
package supervise
