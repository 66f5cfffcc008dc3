package etcd

import (
	"context"
	"expvar"
	"time"

	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// electPause is between two looks whether the log has been taken in.
const electPause = 2 * time.Millisecond

// elect makes a single member the leader as soon as it has applied its log. Left alone it would wait for
// its election timeout, part of it random so that several members do not run against each other; one
// alone has nobody to run against, and so may have a long timeout and few ticks. The message is the one
// by which a leader hands over to a follower.
//
// It must not come before the log is applied: an election looks through the entries that are not, and
// panics if etcd has compacted them by then. A single member that is not the leader commits nothing,
// so once applied equals committed it stays so. That number is had from the status which etcd
// publishes for debugging; where it is not to be had, the election timeout does it.
func elect(ctx context.Context, s *etcdserver.EtcdServer) {
	t := time.NewTicker(electPause)
	defer t.Stop()
	for s.Leader() == 0 {
		if st, ok := raftStatus(); ok && len(s.Cluster().Members()) == 1 && st.ID == uint64(s.MemberID()) &&
			st.GetCommit() > 0 && st.Applied == st.GetCommit() {
			now, self := raftpb.MsgTimeoutNow, uint64(s.MemberID())
			if s.Process(ctx, &raftpb.Message{Type: &now, From: &self, To: &self}) != nil {
				return // it is stopping
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

func raftStatus() (raft.Status, bool) {
	f, ok := expvar.Get("raft.status").(expvar.Func)
	if !ok {
		return raft.Status{}, false
	}
	st, ok := f().(raft.Status)
	return st, ok
}
