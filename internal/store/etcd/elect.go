package etcd

import (
	"context"
	"time"

	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/raft/v3/raftpb"
)

// electPause is between two tries: the election has to wait until the member's own entry in the log is
// applied, which takes a few milliseconds.
const electPause = 2 * time.Millisecond

// elect makes a single member the leader at once. Left alone it would wait for its election timeout,
// up to a second of which is random so that several members do not run against each other; one alone
// has nobody to run against. The message is the one by which a leader hands over to a follower.
func elect(ctx context.Context, s *etcdserver.EtcdServer) {
	t := time.NewTicker(electPause)
	defer t.Stop()
	for s.Leader() == 0 {
		if len(s.Cluster().Members()) == 1 {
			now, self := raftpb.MsgTimeoutNow, uint64(s.MemberID())
			if s.Process(ctx, &raftpb.Message{Type: &now, From: &self, To: &self}) != nil {
				return // it is stopping; the election timeout is still there otherwise
			}
		}
		select {
		case <-t.C:
		case <-s.ReadyNotify():
			return
		case <-ctx.Done():
			return
		}
	}
}
