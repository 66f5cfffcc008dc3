package etcd

import (
	"context"
	"expvar"
	"time"

	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// electPause is the pause between two checks whether the log has been applied.
const electPause = 2 * time.Millisecond

// elect makes a single member the leader as soon as it has applied its log. Otherwise it would wait for its election
// timeout, part of which is random so that several members do not become candidates at the same time. A single member
// has no competitors, so its timeout may be long and its ticks few. The message sent is the one by which a leader
// transfers its leadership (MsgTimeoutNow).
//
// It must not be sent before the log is applied: an election reads the entries that are not applied yet, and panics
// if etcd has compacted them by then. A single member that is not the leader commits nothing, so once applied equals
// committed it stays so. Both numbers come from the status that etcd publishes for debugging (expvar); without it,
// the member waits for the election timeout.
//
// alone says that others, if its log begins with some, are removed at the log's end; see Recover.
func elect(ctx context.Context, s *etcdserver.EtcdServer, alone bool) {
	t := time.NewTicker(electPause)
	defer t.Stop()
	for s.Leader() == 0 && (alone || len(s.Cluster().Members()) < 2) {
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
