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
	fullPause = 5 * time.Second
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
	full := s.noSpace()
	rev := s.server.Server.KV().Rev() - s.cfg.HistoryRevisions
	if full { // history is worth less than being able to write
		rev = s.server.Server.KV().Rev()
	}
	if rev > s.server.Server.KV().FirstRev() {
		if err := s.Compact(ctx, rev); err != nil {
			s.cfg.Log.Warn("could not compact etcd's history", "error", err)
		}
	}
	total, used := s.Size()
	if total-used >= defragMin && used < total/2 || full && used < total {
		if err := s.server.Server.Backend().Defrag(); err != nil {
			s.cfg.Log.Warn("could not defragment etcd's file", "error", err)
			return
		}
	}
	if total, _ := s.Size(); full && total < s.cfg.Quota {
		s.disarm(ctx)
	}
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
