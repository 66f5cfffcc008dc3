// Package supervise starts, watches and stops the parts of the daemon.
//
// It promises: a part starts when the parts that it names (After) are ready. This never depends on a sleep or on the
// order of the list; one that can do without another may say how long it waits for
// it (Await). If a Must part ends, the whole group ends with its error. If a Keep part ends, fails or panics, it
// is started again with back-off, and this is counted. When the group is told to stop, it stops each part before those
// it came after, within a time limit, and names a part that hung. A part that ends leaves nothing running: the context
// of its run ends with it, and a panic in one of its Tasks counts as a panic of the part.
//
// It knows nothing of minik8s. Package roles and tests call it. Nothing of it survives a kill -9.
package supervise
