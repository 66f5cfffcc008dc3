package network

import (
	"testing"
	"time"
)

// The pace of repairs: quick at first, slower while somebody keeps undoing them, and quick again after a calm.
func TestPaceOfRepairs(t *testing.T) {
	now := time.Now()
	p := pace{gap: settle, patience: settle}
	for i, want := range []time.Duration{settle, 2 * settle, 4 * settle, longestGap, longestGap} {
		if got := p.before(now); got != want {
			t.Errorf("before repair %d: %s, want %s", i, got, want)
		}
		now = now.Add(p.before(now))
		p.compared(now, now, true)
	}
	now = now.Add(calm + time.Second)
	if got := p.before(now); got != settle {
		t.Errorf("after a calm: %s", got)
	}
	// A comparison that takes long makes the next one wait, up to a bound.
	for _, c := range []struct{ took, want time.Duration }{{time.Millisecond, settle}, {20 * time.Millisecond, 200 * time.Millisecond}, {time.Second, longestGap}} {
		p.compared(now, now.Add(c.took), false)
		now = now.Add(c.took)
		if got := p.before(now); got != c.want {
			t.Errorf("after a comparison of %s: %s, want %s", c.took, got, c.want)
		}
	}
}
