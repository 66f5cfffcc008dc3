// Package leader runs the scheduler and the controllers on one of several masters: the one that the store says leads, which
// is Raft's leader, or with an external etcd the holder of a lease there.
//
// The store is the failure detector, so there is no time-out here. An Elector waits until its member is Raft's leader, takes
// a Lease by one write, and runs the led parts until the leadership moves. Nothing is renewed: while nothing changes it
// writes nothing and wakes for nothing. When the leadership moves, the parts are told to stop, all at the same time,
// and the Elector waits again.
//
// A master may lead without knowing that it no longer does: it was stopped, or cut off. So the version of the Lease that
// it wrote is the fence (registry.Fence) of every write of its parts: the write's transaction requires that the Lease
// still has that version. The next leader changes the Lease before its parts start. It promises: once a leader has taken
// the Lease, no write of an earlier term is accepted, whatever the masters believe and however late the write comes.
// Reads are not fenced.
//
// The Lease is also where people see who leads. A user who changes or deletes it brings the fence down, too. The next
// write of a led part finds that out; then the parts are stopped, the Lease is taken again and the parts start anew, at
// once, or after a pause of at most a second if it happens all the time. A leader whose parts have nothing to write does
// not notice, and until then the Lease is as the user left it.
//
// roles builds the Elector. Its only state is the Lease, which survives a kill -9. A master that was killed takes it
// again, by one write, as soon as Raft has elected it, which a single member does at once. Nothing is given back at the
// end.
package leader
