// Package external is a store.Store in an etcd that others run: one that is there already, beside or apart from the
// masters.
//
// Every key of the cluster lies below a prefix, so that several clusters, and other users, may share one etcd. Below it
// the store keeps, beside what is written to it, a few keys of its own: the cluster's name, a fence, who leads, who the
// masters are, and how far history was compacted. The certificates with which it is known to etcd are read again for each
// connection.
//
// One prefix is one cluster's. The first master writes the cluster's name there; a store is opened only by who has the
// same name, and makes a new cluster only where none is and when it is told to. Every write has the guard that the name is
// still there, unchanged: where etcd was made anew, or the prefix was removed under a master, that master's store ends, and
// writes nothing into what is there now, and tells nobody that the objects were deleted.
//
// It keeps the contract of package store through the loss of any connection, and of any of etcd's members as long as a
// majority is there. A read asks a majority. A write that got no answer may still be carried out; so each write has the
// guard that the fence is unchanged, and one without an answer is followed by a change of the fence: from then on it was
// carried out or never will be, and the history of its keys tells which. Only if that cannot be found out in time is it
// store.ErrUnknown. That etcd is full it also answers to the write that fills it, which was carried out: so after such an
// answer, too, the history tells. store.Essential has no effect: etcd's quota holds for all, and its alarm is its
// operator's to clear. A watch goes on where it was. A request that cannot be carried out for some seconds ends with
// store.ErrUnavailable.
//
// etcd's revision counts the changes of all its users. A watch that nobody writes to falls behind it, and whoever waits for
// a watch to reach a revision that Revision has returned would wait for ever. So when a watch is behind such a revision it
// asks etcd how far it is (a progress request) and delivers a batch without changes. While nobody asks, it does nothing.
//
// Compaction is for all users of an etcd at once, for etcd has one history. The masters have it done, together once in an
// interval, as those of Kubernetes do: to the revision that was current an interval ago, so that whoever shares the etcd
// keeps the history of at least that time. With no interval they leave it to others. Nothing else of etcd's is touched: its
// members, its quota and alarms, and defragmentation are its operator's.
//
// Of several masters one leads: the one whose key below the prefix has a lease that it renews. When it is killed the lease
// ends after a few seconds and another master leads; one that is stopped gives it back, and one that was killed and is
// started again takes it over. It is only a hint of who should lead: what keeps a deposed master from writing is the fence
// of package registry.
//
//	external.go     what a store is, and how it opens
//	connect.go      connections: certificates, and what is wrong with them
//	cluster.go      whose prefix it is, and who the masters are
//	do.go           requests through short absences of etcd, and its errors
//	kv.go write.go watch.go history.go   store.Store
//	progress.go     how far a watch is that has nothing to tell
//	elect.go        who leads
//	compact.go snapshot.go
//
// Only roles opens it; registry uses it as a store.Store. All state is etcd's, and survives a kill -9 of this process.
package external
