package etcd

import (
	"context"
	"slices"
	"time"
)

const (
	// maxVoters is how many members vote at most: each write waits for a majority of them.
	maxVoters = 5
	// voterCheck is how often the leader looks after who votes.
	voterCheck = time.Second
)

// keepVoters decides, while this member leads, who votes.
func (s *Store) keepVoters(m *member) {
	t := time.NewTicker(voterCheck)
	defer t.Stop()
	away := map[uint64]time.Time{} // since when the leader does not hear from a member
	for {
		select {
		case <-t.C:
		case <-m.ending:
			return
		}
		if m.server.Leader() != m.server.MemberID() {
			clear(away)
			continue
		}
		// One change after the other, without a pause: on the way from one voter to three there are two, of which none
		// may be lost.
		for more := true; more && !m.ended(); {
			members, now := m.members(), time.Now()
			more = s.step(m, next(m.ready(members), absent(members, away, now), s.cfg.ReplaceAfter))
		}
	}
}

// absent is for how long the leader has not heard from each member; away is kept from one call to the next.
func absent(members []Member, away map[uint64]time.Time, now time.Time) map[uint64]time.Duration {
	out := map[uint64]time.Duration{}
	for _, m := range members {
		if !m.Lost {
			delete(away, m.ID)
			continue
		}
		if away[m.ID].IsZero() {
			away[m.ID] = now
		}
		out[m.ID] = now.Sub(away[m.ID])
	}
	return out
}

// change is one change of who votes. The zero change is none.
type change struct {
	promote, remove uint64
}

// next is the next change, one at a time: learners become voters as long as the voters stay, or become, an odd number,
// of at most maxVoters; a voter that is away for longer than replaceAfter goes if a learner can take its place. An even
// number of voters bears the loss of no more members than one less, and each write waits for one more.
func next(members []Member, absent map[uint64]time.Duration, replaceAfter time.Duration) change {
	voters := 0
	var lost uint64
	var ready []uint64
	for _, m := range members {
		_, away := absent[m.ID]
		switch {
		case !m.Learner:
			voters++
			if replaceAfter > 0 && absent[m.ID] >= replaceAfter {
				lost = m.ID
			}
		case !m.Joining && !away:
			ready = append(ready, m.ID)
		}
	}
	switch {
	case len(ready) == 0:
		return change{}
	case lost != 0:
		return change{remove: lost}
	case voters >= maxVoters, voters%2 == 1 && len(ready) < 2:
		return change{}
	}
	return change{promote: ready[0]}
}

// step makes a change. What fails is tried again in the next round: a learner may not have caught up yet.
func (s *Store) step(m *member, c change) (made bool) {
	var err error
	switch {
	case c.promote != 0:
		made, err = true, m.reconfigure(context.Background(), func(ctx context.Context) error {
			_, err := m.server.PromoteMember(ctx, c.promote)
			return err
		})
	case c.remove != 0:
		s.cfg.Log.Warn("a voting member of etcd is away for too long: another one takes its place", "member", c.remove)
		made, err = true, m.remove(context.Background(), c.remove)
	}
	if err != nil {
		s.cfg.Log.Info("the voting members of etcd could not be changed yet", "promote", c.promote, "remove", c.remove, "error", err)
		return false
	}
	return made
}

// ready are the members without the learners that are too far behind to vote.
func (m *member) ready(members []Member) []Member {
	return slices.DeleteFunc(slices.Clone(members), func(e Member) bool { return e.Learner && !m.caughtUp(e.ID) })
}

// caughtUp reports whether a learner has nearly all of the log, as far as is known. etcd checks it, too, but regards the
// answer no as an error.
func (m *member) caughtUp(id uint64) bool {
	st, ok := raftStatus()
	if !ok || st.ID != uint64(m.server.MemberID()) {
		return true
	}
	p, ok := st.Progress[id]
	return ok && p.Match+catchUp >= st.Progress[st.ID].Match
}
