// Package leader runs the scheduler and the controllers on one of several masters: Raft's leader.
//
// Raft is the failure detector, so there is no time-out here. An Elector waits until its member is Raft's leader, takes
// a Lease by one write, which names it for people to see, and runs the led parts until leadership moves. Nothing is
// renewed: while nothing changes it writes nothing and wakes for nothing. Whatever ends the parts, they are told to
// stop at the same time, and the Elector goes on at once: it waits, or takes the Lease again.
//
// A master may lead without knowing that it no longer does: it was stopped, or cut off. So the version of the Lease
// that it wrote is the fence (registry.Fence) of every write of its parts: the write's transaction requires that
// the Lease is still at that version. The next leader changes the Lease before its parts start. It promises: the writes
// of led parts are in the order of the Leases, and after a new leader has taken the Lease none of an earlier one's is
// accepted. Reads are not fenced.
//
// A user who changes or deletes the Lease brings the fence down, too. The next write of a led part then finds that out,
// the parts are stopped, the Lease is taken anew and the parts are started again: at once, or, if somebody does it all
// the time, after a pause. An idle leader does not notice, and need not.
//
// Upgrades and restarts: a master that was killed takes the Lease again with one write when Raft has elected it, which a
// single member does at once. Nothing is given back at the end.
//
// roles builds the Elector. Its only state is the Lease.
package leader
