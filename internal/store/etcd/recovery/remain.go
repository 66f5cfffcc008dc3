package recovery

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/storage"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
)

// errRemoved means that a member is none any more.
var errRemoved = errors.New("this member was removed from its cluster, so that its data are old: recover another one, or restore a snapshot")

// remainAlone adds to a member's log that it votes and all others are removed, and that all of the log is agreed upon.
//
// etcd's own way for this (ForceNewCluster) drops what is not known to be agreed upon, although it may have been
// acknowledged, and fails for a member that does not vote.
func remainAlone(member string, log *zap.Logger) error {
	dir := filepath.Join(member, "wal")
	l, err := readLog(dir, log)
	if err != nil {
		return fmt.Errorf("etcd's log in %s: %w", dir, err)
	}
	defer l.file.Close() //nolint:errcheck // Save has synced it
	self, learner, others := l.members(log)
	if !self {
		return errRemoved
	}
	var add []*raftpb.Entry
	if learner {
		data, err := promotion(l.self)
		if err != nil {
			return err
		}
		add = append(add, &raftpb.Entry{Type: raftpb.EntryConfChange.Enum(), Term: proto.Uint64(l.state.GetTerm()), Index: proto.Uint64(l.last + 1), Data: data})
	}
	add = append(add, storage.CreateConfigChangeEnts(log, append(others, l.self), l.self, l.state.GetTerm(), l.last+uint64(len(add)))...)
	l.state.Commit = proto.Uint64(l.last + uint64(len(add)))
	return l.file.Save(l.state, add)
}

func promotion(id uint64) ([]byte, error) {
	c, err := json.Marshal(membership.ConfigChangeContext{Member: membership.Member{ID: types.ID(id)}, IsPromote: true})
	if err != nil {
		return nil, err
	}
	return proto.Marshal(&raftpb.ConfChange{Type: raftpb.ConfChangeAddNode.Enum(), NodeId: proto.Uint64(id), Context: c})
}

// memberLog is a member's log, open for adding to it.
type memberLog struct {
	file    *wal.WAL
	self    uint64
	state   *raftpb.HardState
	entries []*raftpb.Entry
	last    uint64 // the index of the last entry
	// conf is who the members were before the first entry.
	conf *raftpb.ConfState
}

// readLog reads the log after its last snapshot. What a kill has left half written at its end is cut off.
func readLog(dir string, log *zap.Logger) (*memberLog, error) {
	snaps, err := wal.ValidSnapshotEntries(log, dir)
	if err != nil {
		return nil, err
	}
	from := &walpb.Snapshot{}
	if len(snaps) > 0 {
		from = snaps[len(snaps)-1]
	}
	for repaired := false; ; repaired = true {
		w, err := wal.Open(log, dir, &walpb.Snapshot{Index: proto.Uint64(from.GetIndex()), Term: proto.Uint64(from.GetTerm())})
		if err != nil {
			return nil, err
		}
		meta, state, entries, err := w.ReadAll()
		var m etcdserverpb.Metadata
		if err == nil {
			err = proto.Unmarshal(meta, &m)
		}
		if err == nil {
			l := &memberLog{file: w, self: m.GetNodeID(), state: state, entries: entries, last: from.GetIndex(), conf: from.GetConfState()}
			if len(entries) > 0 {
				l.last = entries[len(entries)-1].GetIndex()
			}
			return l, nil
		}
		if cerr := w.Close(); cerr != nil || repaired || !errors.Is(err, io.ErrUnexpectedEOF) || !wal.Repair(log, dir) {
			return nil, errors.Join(err, cerr)
		}
	}
}

// members says whether this member is one at the end of the log, whether it is one that does not vote, and who the
// others are.
func (l *memberLog) members(log *zap.Logger) (self, learner bool, others []uint64) {
	snap := &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{ConfState: l.conf}}
	others = storage.GetEffectiveNodeIDsFromWALEntries(log, snap, l.entries)
	self = slices.Contains(others, l.self)
	others = slices.DeleteFunc(others, func(id uint64) bool { return id == l.self })
	learner = slices.Contains(l.conf.GetLearners(), l.self)
	for _, e := range l.entries {
		var cc raftpb.ConfChange
		if e.GetType() != raftpb.EntryConfChange || proto.Unmarshal(e.Data, &cc) != nil || cc.GetNodeId() != l.self {
			continue
		}
		learner = cc.GetType() == raftpb.ConfChangeAddLearnerNode || learner && cc.GetType() == raftpb.ConfChangeUpdateNode
	}
	return self, learner, others
}
