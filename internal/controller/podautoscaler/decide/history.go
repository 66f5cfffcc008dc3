package decide

import (
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// History is what an autoscaler's decisions remember. The zero History is that of a new autoscaler. An entry that no longer
// counts is overwritten by the next one, so that it stays short.
type History struct {
	recommended []recommendation
	up, down    []scaling
}

// recommendation is how many pods the metrics wanted once.
type recommendation struct {
	replicas int32
	at       time.Time
}

// scaling is a change of the number of pods; change is never negative.
type scaling struct {
	change int32
	at     time.Time
	// replaceable: it was older than all policies look back when another scaling was noted.
	replaceable bool
}

// begin takes the present number of pods for the first recommendation.
func (h *History) begin(replicas int32, now time.Time) {
	if h.recommended == nil {
		h.recommended = []recommendation{{replicas, now}}
	}
}

// recommend notes a recommendation, in place of the one at old if that is not negative.
func (h *History) recommend(old int, replicas int32, now time.Time) {
	if old >= 0 {
		h.recommended[old] = recommendation{replicas, now}
		return
	}
	h.recommended = append(h.recommended, recommendation{replicas, now})
}

// highest returns the largest of a new recommendation and those of the window before now, and notes the new one.
func (h *History) highest(replicas int32, window time.Duration, now time.Time) int32 {
	from, old, most := now.Add(-window), -1, replicas
	for i, r := range h.recommended {
		if r.at.Before(from) {
			old = i
		} else {
			most = max(most, r.replicas)
		}
	}
	h.recommend(old, replicas, now)
	return most
}

// bounds returns the smallest of a new recommendation and those of the window for scaling up, and the largest of it and those
// of the window for scaling down, and notes the new one.
func (h *History) bounds(replicas int32, up, down time.Duration, now time.Time) (least, most int32) {
	fromUp, fromDown, old := now.Add(-up), now.Add(-down), -1
	least, most = replicas, replicas
	for i, r := range h.recommended {
		if r.at.After(fromUp) {
			least = min(least, r.replicas)
		}
		if r.at.After(fromDown) {
			most = max(most, r.replicas)
		}
		if r.at.Before(fromUp) && r.at.Before(fromDown) {
			old = i
		}
	}
	h.recommend(old, replicas, now)
	return least, most
}

// scaled notes a scaling. Only an autoscaler with a behavior looks back at them.
func (h *History) scaled(b *autoscalingv2.HorizontalPodAutoscalerBehavior, from, to int32, now time.Time) {
	if b == nil {
		return
	}
	list, rules, change := &h.down, b.ScaleDown, from-to
	if to > from {
		list, rules, change = &h.up, b.ScaleUp, to-from
	}
	var longest int32
	for _, p := range rules.Policies {
		longest = max(longest, p.PeriodSeconds)
	}
	since, old := now.Add(-seconds(longest)), -1
	for i := range *list {
		s := &(*list)[i]
		s.replaceable = s.replaceable || s.at.Before(since)
		if s.replaceable {
			old = i
		}
	}
	if old >= 0 {
		(*list)[old] = scaling{change: change, at: now}
		return
	}
	*list = append(*list, scaling{change: change, at: now})
}

// within is the sum of the changes in a policy's period before now.
func within(list []scaling, period int32, now time.Time) int32 {
	since := now.Add(-seconds(period))
	var sum int32
	for _, s := range list {
		if s.at.After(since) {
			sum += s.change
		}
	}
	return sum
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }
