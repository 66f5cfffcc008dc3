package main

import (
	"strings"
	"testing"
)

func TestJudge(t *testing.T) {
	grown := func(ready int, nodes ...string) sample {
		s := sample{wanted: ready, ready: ready, least: 1, most: 2, nodes: map[string]string{}}
		for i, n := range nodes {
			s.nodes[string(rune('a'+i))] = n
		}
		return s
	}
	one, two := grown(1, "m"), grown(2, "m", "w")
	both := []answer{{pod: "a"}, {pod: "b"}}
	for name, x := range map[string]struct {
		samples  []sample
		answers  []answer
		failures []string
		want     string
	}{
		"as it has to be":  {[]sample{one, two, one}, both, nil, ""},
		"nothing was seen": {nil, both, nil, "at most 0 of 0"},
		"it did not grow":  {[]sample{one, one}, both, nil, "at most 1 of 2 replicas were ready"},
		"one machine":      {[]sample{one, grown(2, "m", "m"), one}, both, nil, "all pods were on [m]"},
		"one is not asked": {[]sample{one, two, one}, both[:1], nil, "pod b was ready and got no request"},
		"it stays":         {[]sample{one, two}, both, nil, "at the end 2 replicas are wanted, and not 1"},
		"failures":         {[]sample{one, two, one}, both, []string{"first", "second"}, "2 of 4 requests failed, the first with first"},
	} {
		err := judge(x.samples, x.answers, x.failures)
		if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
