// Package etcd is a store.Store in an etcd that runs inside this process.
//
// It speaks to the server's own functions, not to a client over a socket: a guarded write is one
// Raft entry and one fsync, and a watch is the channel that the server's own watch hub fills. It
// compacts its history by itself and gives space back to the disk when much of the file is empty.
//
// A full disk does not end it: writes are refused with store.ErrNoSpace while there is still room, but for
// those that delete or keep the cluster alive, and what these need is allocated before. When there is room
// again, because things were deleted here or elsewhere on the disk, everything is written again. If others
// take the last of the disk, some tens of thousands of deletions go on; then all writes are refused.
//
// Only roles opens it; registry uses it as a store.Store. All acknowledged writes survive a kill -9:
// fsync is on.
package etcd
