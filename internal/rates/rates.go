// Package rates works out how fast a counter grows, from samples of it. It is pure: whoever samples keeps the samples.
//
// It promises never to say the average since a counter's start, and nothing at all of samples that are too close to each
// other, too far apart, or of which the later one is smaller.
package rates

import "time"

const (
	// Closest is the least time between two samples. The kernel's counters of CPU time move with its ticks, of 1 to 10 ms,
	// so that a rate over a second is right to 1 %.
	Closest = time.Second
	// Longest is how far two samples may be apart for a rate to say something of now.
	Longest = 2 * time.Minute
)

// Point is a counter at one time.
type Point struct {
	Time  time.Time
	Value uint64
}

// Of returns how much a counter of n samples grows in a second, and the time over which that is averaged: at least window
// where the samples go back so far, but never more than Longest. at returns a sample, 0 the oldest. ok is false if no
// rate can be said (yet).
func Of(n int, at func(i int) Point, window time.Duration) (perSecond float64, over time.Duration, ok bool) {
	if n == 0 {
		return 0, 0, false
	}
	last := at(n - 1)
	for i := n - 2; i >= 0; i-- {
		x := at(i)
		age := last.Time.Sub(x.Time)
		if age > Longest || x.Value > last.Value {
			break // too long ago; or the counter went back, so that it counts another thing
		}
		if age < Closest {
			continue
		}
		perSecond, over, ok = float64(last.Value-x.Value)/age.Seconds(), age, true
		if age >= window {
			break
		}
	}
	return perSecond, over, ok
}
