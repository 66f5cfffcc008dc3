package plan

import (
	"math"
	"time"
)

// Scaler says how many instances a function needs. It follows Knative's autoscaler
// (https://knative.dev/docs/serving/autoscaling/kpa-specific/): the average number of calls under way over a stable window is
// divided by how many an instance is to have; while a panic window asks for twice what there is, that counts, and nothing goes.
// Beyond it, calls that wait are counted at once. The stable window is the function's idle time, so that the last instance goes
// when nobody has called for that long. The zero Scaler is no use: set its fields.
type Scaler struct {
	Target float64 // calls of an instance
	Stable time.Duration

	samples  []sample // oldest first
	panicked time.Time
	peak     int32 // while panicking
}

// sample is the load of some time: of a Tick or, where the window is long, of its maxSamples-th part.
type sample struct {
	from, at time.Time // the first and the last time that it was told
	calls    float64   // on average since the time before, added up
	times    int
}

// maxSamples is of how many samples a window is made, at most about.
const maxSamples = 512

const (
	// Tick is how often a Scaler is told of the load, while there is any.
	Tick = 2 * time.Second
	// panicShare of the stable window is the panic window, as with Knative, and not less than a tick.
	panicShare = 10
	// panicAt times the ready instances, asked for by the panic window, is a panic.
	panicAt = 2
	// slowest is the part of the instances that stays from one tick to the next.
	slowest = 0.5
)

// Observe adds how many calls were under way, waiting ones too, on average since the last time.
func (s *Scaler) Observe(now time.Time, calls float64) {
	if last := len(s.samples) - 1; last >= 0 && now.Sub(s.samples[last].from) < s.Stable/maxSamples {
		x := &s.samples[last]
		x.at, x.calls, x.times = now, x.calls+calls, x.times+1
	} else {
		s.samples = append(s.samples, sample{now, now, calls, 1})
	}
	from := now.Add(-s.Stable)
	for len(s.samples) > 0 && !s.samples[0].at.After(from) {
		s.samples = s.samples[1:]
	}
}

// average is that of the samples since a time; of nothing it is 0.
func (s *Scaler) average(since time.Time) float64 {
	sum, n := 0.0, 0
	for i := len(s.samples) - 1; i >= 0 && s.samples[i].at.After(since); i-- {
		sum += s.samples[i].calls
		n += s.samples[i].times
	}
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}

// Desired is how many instances there should be: calls are under way or waiting at this moment, have is how many instances were
// asked for last, ready how many take calls, and idle since when nobody calls.
func (s *Scaler) Desired(now time.Time, calls int, have, ready int32, idle time.Time) int32 {
	asks := func(calls float64) int32 { return int32(math.Ceil(calls/s.Target - 1e-9)) }
	stable := asks(s.average(now.Add(-s.Stable)))
	window := max(s.Stable/panicShare, Tick)
	panicking := asks(s.average(now.Add(-window)))
	at := asks(float64(calls))
	if want := max(panicking, at); float64(want) >= panicAt*math.Max(1, float64(ready)) {
		s.panicked = now
	}
	want := stable
	switch {
	case !s.panicked.IsZero() && now.Sub(s.panicked) < s.Stable && calls > 0:
		s.peak = max(s.peak, panicking, at, have)
		return s.peak
	default:
		s.panicked, s.peak = time.Time{}, 0
	}
	want = max(want, at)
	if want >= have {
		return want
	}
	if now.Sub(idle) < s.Stable && calls == 0 { // somebody has called, if shortly: not to zero
		want = max(want, 1)
	}
	return max(want, int32(math.Floor(float64(have)*slowest))) // gradually
}

// Panicking reports whether a burst counts now.
func (s *Scaler) Panicking() bool { return !s.panicked.IsZero() }
