// Package etcd is a store.Store in an etcd that runs inside this process.
//
// It speaks to the server's own functions, not to a client over a socket: a guarded write is one
// Raft entry and one fsync, and a watch is the channel that the server's own watch hub fills. It
// compacts its history by itself and gives space back to the disk when much of the file is empty.
//
// Only roles opens it; registry uses it as a store.Store. All acknowledged writes survive a kill -9:
// fsync is on.
package etcd
