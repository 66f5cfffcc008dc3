// Package recovery makes a store without a server: Restore one out of a snapshot, Recover one out of what a single member
// has, with everything in its log. Both make a new cluster of one member, whose revisions begin far above those before, in
// one step, and keep what was there before. A kill -9 on the way leaves the old store as it was, and perhaps a directory
// beside it that may be deleted.
//
//	restore.go   a store out of a database's file, and how it takes the place of the old one
//	remain.go    what Recover adds to a member's log so that it goes on alone
//
// Only roles calls it, for "minik8sd ctl etcd restore|recover", while it holds the lock of the data directory.
package recovery
