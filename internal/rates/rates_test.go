package rates

import (
	"testing"
	"time"
)

func TestOf(t *testing.T) {
	start := time.Unix(1000, 0)
	p := func(seconds float64, value uint64) Point {
		return Point{start.Add(time.Duration(seconds * float64(time.Second))), value}
	}
	for name, c := range map[string]struct {
		points []Point
		window time.Duration
		rate   float64
		over   time.Duration
		ok     bool
	}{
		"nothing":                            {},
		"one sample":                         {points: []Point{p(0, 7)}},
		"two":                                {points: []Point{p(0, 100), p(10, 600)}, rate: 50, over: 10 * time.Second, ok: true},
		"the newest that are far enough":     {points: []Point{p(0, 0), p(9, 9), p(10, 19)}, rate: 10, over: time.Second, ok: true},
		"a window":                           {points: []Point{p(0, 0), p(5, 50), p(9, 90), p(10, 200)}, window: 5 * time.Second, rate: 30, over: 5 * time.Second, ok: true},
		"a window longer than what is known": {points: []Point{p(0, 0), p(9, 90), p(10, 200)}, window: time.Minute, rate: 20, over: 10 * time.Second, ok: true},
		"too close":                          {points: []Point{p(0, 0), p(0.5, 50)}},
		"too close, and one before":          {points: []Point{p(0, 0), p(9.5, 90), p(10, 200)}, rate: 20, over: 10 * time.Second, ok: true},
		"too long ago":                       {points: []Point{p(0, 0), p(121, 50)}},
		"the counter went back":              {points: []Point{p(0, 70), p(10, 50)}},
		"it went back once":                  {points: []Point{p(0, 70), p(10, 50), p(20, 60)}, window: time.Minute, rate: 1, over: 10 * time.Second, ok: true},
		"the clock was set back":             {points: []Point{p(20, 70), p(10, 90)}},
	} {
		rate, over, ok := Of(len(c.points), func(i int) Point { return c.points[i] }, c.window)
		if rate != c.rate || over != c.over || ok != c.ok {
			t.Errorf("%s: %v over %v, %v; want %v over %v, %v", name, rate, over, ok, c.rate, c.over, c.ok)
		}
	}
}
