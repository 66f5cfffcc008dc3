package etcd

import (
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// turnKey is there while a member defragments its file, which blocks it: one does so at a time, or a majority would be
// blocked. It is no key of an object.
const turnKey = "minik8s/defragmenting"

// turnFor is when a member that has died in its turn is waited for no more.
const turnFor = 5 * time.Minute

// turn takes this member's turn to do what blocks it, and returns what ends it; nil if it is not its turn, and the next
// round asks again. Who leads passes that on first, to one that answers, so that nobody waits for an election.
func (s *Store) turn(ctx context.Context, m *member) (over func()) {
	if m.alone {
		return func() {}
	}
	if m.server.Leader() == m.server.MemberID() {
		if s.passOn(ctx, m) {
			return nil
		}
	}
	lease, err := m.server.LeaseGrant(ctx, &pb.LeaseGrantRequest{TTL: int64(turnFor.Seconds())})
	if err != nil {
		return nil
	}
	end := func() {
		m.server.LeaseRevoke(context.WithoutCancel(ctx), &pb.LeaseRevokeRequest{ID: lease.ID}) //nolint:errcheck // it ends by itself
	}
	resp, err := m.kv.Txn(ctx, &pb.TxnRequest{
		Compare: []*pb.Compare{{Key: []byte(turnKey), Target: pb.Compare_CREATE, Result: pb.Compare_EQUAL, TargetUnion: &pb.Compare_CreateRevision{}}},
		Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte(turnKey), Lease: lease.ID}}}},
	})
	if err != nil || !resp.Succeeded {
		end()
		return nil
	}
	return end
}

// passOn hands leadership to another voter that is heard, and reports whether one has it. A leader whose others are all
// away has no majority, or is the only voter.
func (s *Store) passOn(ctx context.Context, m *member) bool {
	for _, e := range m.certain() {
		if e.Learner || e.Lost || e.Self {
			continue
		}
		if err := m.server.MoveLeader(ctx, uint64(m.server.MemberID()), e.ID); err == nil {
			return true
		}
	}
	return false
}
