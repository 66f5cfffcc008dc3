package decide

import (
	"errors"
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
)

// The errors of a target whose pods say nothing.
var (
	errNoPods    = errors.New("no pods returned by selector while calculating replica count")
	errNoMetrics = errors.New("did not receive metrics for targeted pods (pods might be unready)")
	errStrangers = errors.New("no metrics returned matched known pods")
)

// proposal is what one metric wants.
type proposal struct {
	replicas int32
	// average is what a pod uses on average, in thousandths; percent the same of the basis.
	average int64
	percent int32
}

// sums are what pods use together. known has only those pods of which the basis is known.
type sums struct {
	n            int
	used         int64
	known        int
	usedKnown    int64
	basisOfKnown int64
}

func (s *sums) add(name string, used int64, b *basis) {
	s.n++
	s.used += used
	if b == nil {
		return
	}
	if of, ok := b.of[name]; ok {
		s.known++
		s.usedKnown += used
		s.basisOfKnown += of
	}
}

// goal is what pods are to use: an amount on average, or a percentage of a basis.
type goal struct {
	basis   *basis // nil: an amount
	percent int32
	amount  int64
	unit    unit
}

// ratio is how far what is used is from the goal; 1 is at it. p gets what is shown of it.
func (g *goal) ratio(s *sums) (ratio float64, p proposal, err error) {
	if g.basis == nil {
		p.average = s.used / int64(s.n)
		return float64(p.average) / float64(g.amount), p, nil
	}
	if s.basisOfKnown == 0 {
		return 0, p, errStrangers
	}
	p.percent, p.average = int32(s.usedKnown*100/s.basisOfKnown), s.usedKnown/int64(s.known)
	return float64(p.percent) / float64(g.percent), p, nil
}

// full is what a pod without metrics counts as when pods are to be taken away: as busy as it is to be, and at least all of its
// basis.
func (g *goal) full(name string) int64 {
	if g.basis == nil {
		return g.amount
	}
	return g.basis.of[name] * int64(max(100, g.percent)) / 100
}

// usage is what a metric wants that each pod has. resource is empty if it is not one of theirs; only of cpu the pods' start
// counts. goalOf is asked when it is known that there is something to compare.
func (in *Input) usage(d *Decision, metrics map[string]PodMetric, resource corev1.ResourceName, goalOf func() (goal, error)) (proposal, error) {
	if len(in.Pods) == 0 {
		return proposal{}, errNoPods
	}
	g := in.group(metrics, resource)
	counted := 0
	for name := range metrics {
		if !g.without[name] {
			counted++
		}
	}
	if counted == 0 {
		return proposal{}, errNoMetrics
	}
	goal, err := goalOf()
	if err != nil {
		return proposal{}, err
	}
	var s sums
	for name, m := range metrics {
		if !g.without[name] {
			s.add(name, m.Value, goal.basis)
		}
	}
	ratio, p, err := goal.ratio(&s)
	if err != nil {
		return proposal{}, err
	}
	goal.explain(d, &s, &p, ratio)
	p.replicas = in.replicas(d, &goal, &g, s, ratio)
	return p, nil
}

// replicas is how many pods the ratio asks for. Pods of which nothing counts are taken at what keeps the number of pods
// closest to what it is, and then the direction must not change.
func (in *Input) replicas(d *Decision, goal *goal, g *groups, s sums, ratio float64) int32 {
	within, now := in.tolerance(), in.Scale.Wanted
	idle := len(g.unready) > 0 && ratio > 1
	if !idle && len(g.missing) == 0 {
		if within.has(ratio) {
			d.say("  that is within the tolerance of %s to %s: %d pods stay", number(1-within.down), number(1+within.up), now)
			return now
		}
		want := int32(math.Ceil(ratio * float64(g.ready)))
		d.say("  %s x %s = %s: %d", number(ratio), count(g.ready, "pod that counts", "pods that count"), number(ratio*float64(g.ready)), want)
		return want
	}
	for _, name := range g.missing {
		switch {
		case ratio < 1:
			s.add(name, goal.full(name), goal.basis)
		case ratio > 1:
			s.add(name, 0, goal.basis)
		}
	}
	if idle {
		for _, name := range g.unready {
			s.add(name, 0, goal.basis)
		}
	}
	d.say("  %s", others(g, ratio, idle))
	again, _, err := goal.ratio(&s)
	switch {
	case err != nil: // not possible: there was a ratio before
		return now
	case within.has(again):
		d.say("  with them %s, within the tolerance: %d pods stay", number(again), now)
		return now
	case ratio < 1 && again > 1, ratio > 1 && again < 1:
		d.say("  with them %s, which would be the other direction: %d pods stay", number(again), now)
		return now
	}
	want := int32(math.Ceil(again * float64(s.n)))
	if again < 1 && want > now || again > 1 && want < now {
		d.say("  with them %s x %d = %d, against the direction of the load: %d pods stay", number(again), s.n, want, now)
		return now
	}
	d.say("  with them %s x %s = %s: %d", number(again), count(s.n, "pod", "pods"), number(again*float64(s.n)), want)
	return want
}

// others says as what the pods are taken of which nothing counts.
func others(g *groups, ratio float64, idle bool) string {
	text := ""
	if n := len(g.missing); n > 0 {
		as := "left out"
		switch {
		case ratio < 1:
			as = "taken as busy as it is to be"
		case ratio > 1:
			as = "taken as idle"
		}
		text = fmt.Sprintf("%s without metrics: each is %s", count(n, "pod", "pods"), as)
	}
	if idle {
		if text != "" {
			text += "; "
		}
		text += fmt.Sprintf("%s not ready yet: taken as idle", count(len(g.unready), "pod", "pods"))
	}
	return text
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
