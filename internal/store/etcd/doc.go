// Package etcd is a store.Store in an etcd that runs inside this process.
//
// It speaks to the server's own functions, not to a client over a socket: a guarded write is one Raft entry and one
// fsync, and a watch is the channel that the server's own watch hub fills. It compacts its history and defragments
// its file by itself.
//
// A full disk does not end it. Writes are refused with store.ErrNoSpace while there is still some space left, except
// for those that delete or keep the cluster alive, and the space that these need is allocated beforehand. When there
// is space again, because something was deleted here or elsewhere on the disk, all writes are accepted again. If
// other programs fill the disk to the last byte, some tens of thousands of deletions still succeed; then all writes
// are refused.
//
// Only roles opens it; registry uses it as a store.Store. All acknowledged writes survive a kill -9:
// fsync is on.
package etcd
