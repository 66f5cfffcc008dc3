package etcd

import (
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

const (
	// Defragment when at least defragMin bytes of the file are empty and they are half of it: it
	// rewrites the file and stops writes meanwhile.
	defragMin = 64 << 20
	// fullPause is the least time between two rounds while the store is full.
	fullPause = time.Second
)

// housekeeping drops old history and gives empty space back, both seldom.
func (s *Store) housekeeping() {
	defer s.done.Done()
	t := time.NewTicker(s.cfg.CompactEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			s.keepHouse()
			s.aged = s.server.Server.KV().Rev()
		case <-s.full:
			s.keepHouse()
			// Not again at once: each round rewrites the file.
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

func (s *Store) keepHouse() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	full := s.noSpace() || room(s.space.room.Load()) != plenty
	// What was there one round ago is old, however little has been written since.
	rev := max(s.server.Server.KV().Rev()-s.cfg.HistoryRevisions, s.aged)
	if full { // history is worth less than being able to write
		rev = s.server.Server.KV().Rev()
	}
	if rev > s.server.Server.KV().FirstRev() {
		compact := s.Compact
		if full {
			compact = s.compactWithin
		}
		if err := compact(ctx, rev); err != nil {
			s.cfg.Log.Warn("could not compact etcd's history", "error", err)
		}
	}
	if full {
		s.server.Server.Backend().ForceCommit() // the pages are counted as free then
	}
	total, used := s.Size()
	if total-used >= defragMin && used < total/2 || full && total-used >= s.space.segment/4 {
		s.defragment(used)
	}
	if total, _ := s.Size(); full && total < s.cfg.Quota {
		s.disarm(ctx)
	}
}

// compactWithin compacts where space is short. It waits until the old is out of the file, else that would be
// copied with the rest. And it goes by steps: the file's pages are written anew elsewhere in it, before
// the old ones can be used, and each step keeps to the room that was allocated for that.
func (s *Store) compactWithin(ctx context.Context, rev int64) error {
	resp, err := s.kv.Range(ctx, &pb.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}, CountOnly: true})
	if err != nil {
		return wrap(err)
	}
	_, used := s.Size()
	const page = 4 << 10
	each := 2 * max(used/max(resp.Count, 1), page) // a page holds two values at least
	step := max(s.space.headroom/2/each, 1)
	for at := max(s.server.Server.KV().FirstRev(), 1); at < rev && ctx.Err() == nil; {
		at = min(at+step, rev)
		if _, err := s.kv.Compact(ctx, &pb.CompactionRequest{Revision: at, Physical: true}); err != nil {
			return wrap(err)
		}
	}
	return ctx.Err()
}

// defragment writes the file anew without its empty pages, if there is room for both.
func (s *Store) defragment(used int64) {
	if free := s.space.free(); free < used+s.space.segment/4 {
		s.cfg.Log.Warn("etcd's file has empty pages that cannot be given back: writing it anew takes more room than there is", "needed", used, "free", free)
		return
	}
	if err := s.server.Server.Backend().Defrag(); err != nil {
		s.cfg.Log.Warn("could not defragment etcd's file", "error", err)
		return
	}
	s.space.rewritten()
}

// noSpace says whether etcd refuses writes because its quota was reached.
func (s *Store) noSpace() bool {
	for _, a := range s.server.Server.Alarms() {
		if a.Alarm == pb.AlarmType_NOSPACE {
			return true
		}
	}
	return false
}

// disarm lets writes through again once there is room.
func (s *Store) disarm(ctx context.Context) {
	for _, a := range s.server.Server.Alarms() {
		if a.Alarm != pb.AlarmType_NOSPACE {
			continue
		}
		_, err := s.server.Server.Alarm(ctx, &pb.AlarmRequest{
			Action: pb.AlarmRequest_DEACTIVATE, MemberID: a.MemberID, Alarm: a.Alarm})
		if err != nil {
			s.cfg.Log.Warn("could not clear etcd's alarm", "error", err)
		}
	}
}
