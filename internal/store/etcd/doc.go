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
// Several machines keep one store together: each is a member with all data, and a majority of those that vote must be
// there. A member alone opens no port. When another one joins it for the first time, its server restarts in place with a
// port for members. A member joins as a learner, which does not vote; the leader promotes learners as long as the number
// of voters becomes odd, to at most five, and lets one take the place of a voter that is away for long. On each member,
// learners too, a read has all that was acknowledged anywhere before, and a write is proposed again if the leader is lost
// on the way, after it is certain that the first attempt was not and never will be carried out; what cannot be known is
// store.ErrUnknown. Watches outlive both.
//
// A member that starts, or whose server has ended, asks the others by another way whether it is still one. If they say no,
// because it was removed or the cluster was made anew elsewhere, it puts its data aside and joins as a new member; silence,
// or the answer of a cluster whose revision is lower than its own, changes nothing. What it had is kept until that happens
// again. So a cluster that was restored is the only one as soon as its members hear of each other.
//
// Package space below it watches the disk; package recovery makes a store out of a snapshot, or out of what one member has.
//
//	etcd.go       what a store is, and how it opens
//	member.go     one run of etcd's server
//	peers.go      the members: joining, leaving
//	others.go     what a member does that was removed
//	snapshot.go   copies
//	voters.go     which of them vote
//	elect.go      how a single member becomes leader at once
//	do.go         requests across a change of leader
//	kv.go write.go watch.go history.go   store.Store
//	fence.go      writes that got no answer from a leader: none is carried out twice, or after it was refused
//	housekeeping.go log.go
//
// Only roles opens it; registry uses it as a store.Store. All acknowledged writes survive a kill -9:
// fsync is on.
package etcd
