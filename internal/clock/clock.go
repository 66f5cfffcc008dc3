package clock

import "time"

var offset time.Duration

// Now is the time of day.
func Now() time.Time { return time.Now().Add(offset) }

// Skew makes the clock be ahead of the machine's, or behind it if d is negative. It is called once, before anything else
// runs.
func Skew(d time.Duration) { offset = d }

// Of is what this clock showed when the machine's showed t.
func Of(t time.Time) time.Time { return t.Add(offset) }
