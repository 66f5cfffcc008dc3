package main

import (
	"errors"
	"slices"
	"testing"
	"time"

	"minik8s/internal/hosts/autoscale/chart"
)

// small is a record of three seconds.
func small() *record {
	unknown := seen(1, "m", "w")
	unknown.used, unknown.wanted = -1, 3
	at := func(ms int, pod string) answer {
		return answer{time.Duration(ms) * time.Millisecond, 20 * time.Millisecond, pod}
	}
	return &record{least: 1, target: 50, samples: []sample{seen(0, "m"), unknown, seen(2, "m", "w")},
		answers: []answer{at(100, "a"), at(970, "b"), at(990, "a"), at(1200, "b"), at(1300, "gone"), at(2900, "b"), at(2990, "b")},
		moments: []moment{{0, 4, 10 * time.Millisecond, ""}, {time.Second, 14, 0, ""}, {2 * time.Second, 14, 0, higher}}, failures: []failure{{0, errors.New("refused")}}}
}

func TestPicture(t *testing.T) {
	p := picture(small())
	if len(p.Panels) != 3 || !slices.Equal(p.Marks, []chart.Mark{{At: 0, Name: "4/s × 10 ms"}, {At: time.Second, Name: "14/s × 0 ms"}, {At: 2 * time.Second, Name: "/higher"}}) {
		t.Errorf("%+v", p)
	}
	const s = time.Second
	want := map[string][]chart.Point{
		"ready": {{At: 0, Value: 1}, {At: s, Value: 2}, {At: 2 * s, Value: 2}}, "wanted": {{At: 0, Value: 1}, {At: s, Value: 3}, {At: 2 * s, Value: 2}},
		"used": {{At: 0, Value: 50}, {At: 2 * s, Value: 50}}, "target": {{At: 0, Value: 50}, {At: s, Value: 50}, {At: 2 * s, Value: 50}},
		// By when they were answered, the last second left out: in it some are still to come.
		"all": {{At: s / 2, Value: 2}, {At: s + s/2, Value: 3}, {At: 2*s + s/2, Value: 1}},
		"m":   {{At: s / 2, Value: 1}, {At: s + s/2, Value: 1}, {At: 2*s + s/2, Value: 0}},
		"w":   {{At: s / 2, Value: 1}, {At: s + s/2, Value: 1}, {At: 2*s + s/2, Value: 1}},
	}
	for _, panel := range p.Panels {
		for _, l := range panel.Lines {
			if !slices.Equal(l.Points, want[l.Name]) {
				t.Errorf("%s: %v", l.Name, l.Points)
			}
			delete(want, l.Name)
		}
	}
	if len(want) > 0 {
		t.Error("not drawn:", want)
	}
	picture(&record{}) // of what ended at once
}

func TestSummary(t *testing.T) {
	want := "gone                     on          answered    1 requests\na                        on m        answered    2 requests\n" +
		"b                        on w        answered    4 requests\n" +
		"7 requests were answered and 1 failed; half of them within 20ms, the slowest within 20ms\n"
	if got := small().summary(); got != want {
		t.Errorf("%s", got)
	}
}
