package main

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// seen is a sample in which pods a, b, ... are ready on these nodes.
func seen(at int, nodes ...string) sample {
	s := sample{at: time.Duration(at) * time.Second, wanted: len(nodes), pods: len(nodes), used: 50, ready: map[string]string{}}
	for i, n := range nodes {
		s.ready[string(rune('a'+i))] = n
	}
	return s
}

func TestJudge(t *testing.T) {
	one, two := seen(0, "m"), seen(5, "m", "w")
	ending := one
	ending.pods = 2
	both := []answer{{pod: "a"}, {pod: "b"}}
	for name, x := range map[string]struct {
		record
		want string
	}{
		"as it has to be":      {record{samples: []sample{one, two, one}, answers: both}, ""},
		"nothing was seen":     {record{answers: both}, "nothing was seen"},
		"it did not grow":      {record{samples: []sample{one, one}, answers: both}, "replicas did not grow: at most 1 were ready"},
		"one machine":          {record{samples: []sample{one, seen(5, "m", "m"), one}, answers: both}, "replicas were not spread: at most 2 were ready, on [m]"},
		"none was asked":       {record{samples: []sample{one, two, seen(16, "m", "w"), one}, answers: both[:1]}, "pod b on w was ready for 10s and got no request"},
		"too short to be":      {record{samples: []sample{one, two, seen(14, "m", "w"), one}, answers: both[:1]}, ""},
		"it stays":             {record{samples: []sample{one, two}, answers: both}, "replicas did not become 1 again"},
		"one that never ends":  {record{samples: []sample{one, two, ending}, answers: both}, "replicas did not become 1 again"},
		"one that is not well": {record{samples: []sample{one, two, {wanted: 1, pods: 1}}, answers: both}, "replicas did not become 1 again"},
		"failures": {record{samples: []sample{one, two, one}, answers: both, failures: []failure{{3 * time.Second, errors.New("refused")}, {0, errors.New("reset")}}},
			"2 of 4 requests failed\n  after 3.0s: refused\n  after 0.0s: reset"},
	} {
		x.least = 1
		err := judge(&x.record)
		if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGrown(t *testing.T) {
	r, before := &record{target: 50}, seen(0, "m")
	more := func(change func(*sample)) sample {
		s := seen(5, "m", "w")
		change(&s)
		return s
	}
	for name, x := range map[string]struct {
		now  sample
		want bool
	}{
		"more":                  {more(func(*sample) {}), true},
		"within the tolerance":  {more(func(s *sample) { s.used = 55 }), true},
		"with more to add":      {more(func(s *sample) { s.used = 56 }), false},
		"not all are ready":     {more(func(s *sample) { s.wanted = 3 }), false},
		"nothing is known":      {more(func(s *sample) { s.used = -1 }), false},
		"as many as there were": {before, false},
	} {
		if grown(r, before, x.now) != x.want {
			t.Error(name)
		}
	}
}
