package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"minik8s/internal/hosts/autoscale/chart"
)

// picture is the record, drawn.
func picture(r *record) *chart.Picture {
	wanted, ready := chart.Line{Name: "wanted", Steps: true, Dashed: true}, chart.Line{Name: "ready", Steps: true}
	target, used := chart.Line{Name: "target", Dashed: true}, chart.Line{Name: "used"}
	for _, s := range r.samples {
		wanted.Points = append(wanted.Points, chart.Point{At: s.at, Value: float64(s.wanted)})
		ready.Points = append(ready.Points, chart.Point{At: s.at, Value: float64(len(s.ready))})
		target.Points = append(target.Points, chart.Point{At: s.at, Value: float64(r.target)})
		if s.used >= 0 {
			used.Points = append(used.Points, chart.Point{At: s.at, Value: float64(s.used)})
		}
	}
	p := &chart.Picture{Title: "Replicas that follow the load", Panels: []chart.Panel{
		{Title: "Replicas", Lines: []chart.Line{ready, wanted}},
		{Title: "CPU per replica, of what it requests", Unit: "%", Lines: []chart.Line{used, target}},
		{Title: "Requests answered per second, by machine", Lines: perSecond(r)},
	}}
	for _, m := range r.moments {
		name := fmt.Sprintf("%d/s × %d ms", m.rate, m.work.Milliseconds())
		if m.press != "" {
			name = "/" + m.press
		}
		p.Marks = append(p.Marks, chart.Mark{At: m.at, Name: name})
	}
	return p
}

// perSecond counts the requests of each whole second that were answered: all, and for each node those of its pods.
func perSecond(r *record) []chart.Line {
	node, seconds := r.nodes(), 0
	for _, a := range r.answers {
		seconds = max(seconds, a.second()+1)
	}
	all, by := make([]int, seconds), map[string][]int{}
	for _, name := range node {
		by[name] = make([]int, seconds)
	}
	for _, a := range r.answers {
		all[a.second()]++
		if name, ok := node[a.pod]; ok {
			by[name][a.second()]++
		}
	}
	lines := []chart.Line{line("all", all)}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		lines = append(lines, line(name, by[name]))
	}
	return lines
}

// second is the one in which it came.
func (a answer) second() int { return int((a.at + a.took).Seconds()) }

// line is a course by whole seconds, drawn in their middle; the last one is not over.
func line(name string, counts []int) chart.Line {
	l := chart.Line{Name: name}
	for i, n := range counts[:max(0, len(counts)-1)] {
		l.Points = append(l.Points, chart.Point{At: time.Duration(i)*time.Second + time.Second/2, Value: float64(n)})
	}
	return l
}
