package etcd

import (
	"testing"
	"time"
)

func TestNextVoter(t *testing.T) {
	const limit = time.Minute
	voter := func(id uint64) Member { return Member{ID: id, Name: "v"} }
	learner := func(id uint64) Member { return Member{ID: id, Name: "l", Learner: true} }
	unstarted := func(id uint64) Member { return Member{ID: id, Joining: true, Learner: true} }
	for name, c := range map[string]struct {
		members []Member
		absent  map[uint64]time.Duration
		want    change
	}{
		"alone":                               {members: []Member{voter(1)}},
		"two machines: one votes":             {members: []Member{voter(1), learner(2)}},
		"the third makes three of one":        {members: []Member{voter(1), learner(2), learner(3)}, want: change{promote: 2}},
		"on the way to three":                 {members: []Member{voter(1), voter(2), learner(3)}, want: change{promote: 3}},
		"a third that has not started":        {members: []Member{voter(1), learner(2), unstarted(3)}},
		"a third that is away":                {members: []Member{voter(1), learner(2), learner(3)}, absent: map[uint64]time.Duration{3: 0}},
		"four machines: three vote":           {members: []Member{voter(1), voter(2), voter(3), learner(4)}},
		"five of five":                        {members: []Member{voter(1), voter(2), voter(3), learner(4), learner(5)}, want: change{promote: 4}},
		"no more than five":                   {members: []Member{voter(1), voter(2), voter(3), voter(4), voter(5), learner(6), learner(7)}},
		"a voter away for a while":            {members: []Member{voter(1), voter(2), voter(3), learner(4)}, absent: map[uint64]time.Duration{2: limit - 1}},
		"a voter lost, a learner there":       {members: []Member{voter(1), voter(2), voter(3), learner(4)}, absent: map[uint64]time.Duration{2: limit}, want: change{remove: 2}},
		"then the learner votes":              {members: []Member{voter(1), voter(3), learner(4)}, want: change{promote: 4}},
		"a voter lost, nobody to replace it":  {members: []Member{voter(1), voter(2), voter(3)}, absent: map[uint64]time.Duration{2: limit}},
		"a voter lost, the learner lost, too": {members: []Member{voter(1), voter(2), voter(3), learner(4)}, absent: map[uint64]time.Duration{2: limit, 4: 0}},
	} {
		if got := next(c.members, c.absent, limit); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	lost := []Member{voter(1), voter(2), voter(3), learner(4)}
	if got := next(lost, map[uint64]time.Duration{2: time.Hour}, 0); got != (change{}) {
		t.Errorf("nobody is to be replaced, and %+v", got)
	}
}

func TestAbsent(t *testing.T) {
	away, at := map[uint64]time.Time{}, time.Unix(1000, 0)
	members := func(lost bool) []Member { return []Member{{ID: 1}, {ID: 2, Lost: lost}} }
	if got := absent(members(true), away, at); len(got) != 1 || got[2] != 0 {
		t.Error(got)
	}
	if got := absent(members(true), away, at.Add(time.Minute)); got[2] != time.Minute {
		t.Error(got)
	}
	if got := absent(members(false), away, at.Add(2*time.Minute)); len(got) != 0 {
		t.Error(got)
	}
	if got := absent(members(true), away, at.Add(3*time.Minute)); got[2] != 0 {
		t.Error("it counts from before it was back", got)
	}
}

func TestCanSpare(t *testing.T) {
	voter := func(id uint64, lost bool) Member { return Member{ID: id, Lost: lost} }
	learner := func(id uint64) Member { return Member{ID: id, Joining: true, Learner: true} }
	for name, x := range map[string]struct {
		members []Member
		id      uint64
		want    bool
	}{
		"one of three":                       {[]Member{voter(1, false), voter(2, false), voter(3, false)}, 3, true},
		"the one of three that is lost":      {[]Member{voter(1, false), voter(2, false), voter(3, true)}, 3, true},
		"another one than that":              {[]Member{voter(1, false), voter(2, false), voter(3, true)}, 2, false},
		"learners do not count":              {[]Member{voter(1, false), voter(2, false), voter(3, true), learner(4), learner(5)}, 2, false},
		"a learner":                          {[]Member{voter(1, false), learner(2)}, 2, true},
		"the only voter":                     {[]Member{voter(1, false), learner(2)}, 1, false},
		"one of five, of which one is lost":  {[]Member{voter(1, false), voter(2, false), voter(3, true), voter(4, false), voter(5, false)}, 1, true},
		"one of five, of which two are lost": {[]Member{voter(1, false), voter(2, true), voter(3, true), voter(4, false), voter(5, false)}, 1, false},
	} {
		if got := canSpare(x.members, x.id); got != x.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
