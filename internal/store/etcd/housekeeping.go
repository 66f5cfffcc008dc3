package etcd

import (
	"context"
	"errors"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/types"

	"minik8s/internal/store"
)

const (
	// Defragment when at least defragMin bytes of the file are empty and they are half of it: it
	// rewrites the file and stops writes meanwhile.
	defragMin = 64 << 20
	// fullPause is the least time between two rounds while the store is full.
	fullPause = time.Second
)

// housekeeping compacts old history and defragments the file, both seldom.
func (s *Store) housekeeping() {
	defer s.done.Done()
	t := time.NewTicker(s.cfg.CompactEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			s.aged = s.keepHouse()
		case <-s.full:
			s.keepHouse()
			// Not again immediately: each round rewrites the file.
			select {
			case <-time.After(fullPause):
			case <-s.quit:
				return
			}
		case <-s.quit:
			return
		}
	}
}

// keepHouse is one round; it returns the revision at its end. The database's file is each member's own; history is
// compacted by the leader, for all.
func (s *Store) keepHouse() int64 {
	m, release, restarted := s.running()
	if restarted != nil {
		return s.aged
	}
	defer release()
	if closed(m.server.StoppingNotify()) {
		return s.aged
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	full := m.noSpace() || s.space.Low()
	// Revisions of one round ago are old, however little has been written since.
	rev := max(m.server.KV().Rev()-s.cfg.HistoryRevisions, s.aged)
	if full { // without space, all history is given up
		rev = m.server.KV().Rev()
	}
	if rev > m.server.KV().FirstRev() && (full || m.server.Leader() == m.server.MemberID()) {
		if err := s.compact(ctx, m, rev, full); err != nil {
			s.cfg.Log.Warn("could not compact etcd's history", "error", err)
		}
	}
	if full {
		m.server.Backend().ForceCommit() // so that the freed pages are counted
	}
	total, used := m.size()
	switch {
	case full && total-used >= s.space.Segment()/4: // nothing can be written, so nobody can be asked to wait
		s.defragment(m, used)
	case total-used >= defragMin && used < total/2:
		if over := s.turn(ctx, m); over != nil {
			s.defragment(m, used)
			over()
		}
	}
	if total, _ := m.size(); full && total < s.cfg.Quota {
		s.disarm(ctx, m)
	}
	return m.server.KV().Rev()
}

// compact drops the history before a revision.
func (s *Store) compact(ctx context.Context, m *member, rev int64, full bool) error {
	if full {
		return s.compactWithin(ctx, m, rev)
	}
	_, err := m.kv.Compact(ctx, &pb.CompactionRequest{Revision: rev})
	return wrap(err)
}

// compactWithin compacts when space is short. It waits until old revisions are removed from the file, or
// defragmenting would copy them, too. It works in steps, because changed pages are written elsewhere in the file
// before the old ones can be reused: each step needs no more than the space that is allocated for it.
func (s *Store) compactWithin(ctx context.Context, m *member, rev int64) error {
	resp, err := m.kv.Range(ctx, &pb.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}, CountOnly: true})
	if err != nil {
		return wrap(err)
	}
	_, used := m.size()
	const page = 4 << 10
	each := 2 * max(used/max(resp.Count, 1), page) // a page holds at least two values
	most := max(s.space.Headroom()/2/each, 1)
	step := int64(1)
	for at := max(m.server.KV().FirstRev(), 1); at < rev && ctx.Err() == nil; {
		if !s.space.Fits() {
			return store.ErrNoSpace
		}
		at = min(at+step, rev)
		before, _ := m.size()
		_, err := m.kv.Compact(ctx, &pb.CompactionRequest{Revision: at, Physical: true})
		if err = wrap(err); err != nil && !errors.Is(err, store.ErrCompacted) { // another member may do the same
			return err
		}
		// Values differ in size: a step that made the file grow is followed by a small one.
		if after, _ := m.size(); after > before {
			step = 1
		} else {
			step = min(2*step, most)
		}
	}
	return ctx.Err()
}

// defragment blocks this member: see turn. It rewrites the file without its empty pages, if there is space for both.
func (s *Store) defragment(m *member, used int64) {
	if free := s.space.Free(); free < used+s.space.Segment()/4 {
		s.cfg.Log.Warn("etcd's file has empty pages that cannot be given back: writing it anew takes more room than there is", "needed", used, "free", free)
		return
	}
	if err := m.server.Backend().Defrag(); err != nil {
		s.cfg.Log.Warn("could not defragment etcd's file", "error", err)
		return
	}
	s.space.FileReplaced()
}

// noSpace reports whether etcd refuses writes because its quota was reached.
func (m *member) noSpace() bool {
	for _, a := range m.server.Alarms() {
		if a.Alarm == pb.AlarmType_NOSPACE {
			return true
		}
	}
	return false
}

// disarm clears etcd's NOSPACE alarm once there is space, so that it accepts writes again. It is about this member's
// space; others clear theirs, but for those that are gone.
func (s *Store) disarm(ctx context.Context, m *member) {
	for _, a := range m.server.Alarms() {
		if a.Alarm != pb.AlarmType_NOSPACE || a.MemberID != uint64(m.server.MemberID()) && m.server.Cluster().Member(types.ID(a.MemberID)) != nil {
			continue
		}
		_, err := m.server.Alarm(ctx, &pb.AlarmRequest{
			Action: pb.AlarmRequest_DEACTIVATE, MemberID: a.MemberID, Alarm: a.Alarm})
		if err != nil {
			s.cfg.Log.Warn("could not clear etcd's alarm", "error", err)
		}
	}
}
