package events

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The numbers are those of Kubernetes' correlator (client-go, tools/record/events_cache.go).
const (
	// maxRemembered bounds each of the correlator's maps.
	maxRemembered = 4096
	// combineAfter is how many messages, differing only in their text, one object gets within
	// combineWindow before they are combined into one Event.
	combineAfter  = 10
	combineWindow = 10 * time.Minute
	// An object's budget: burst events, and one more every refill.
	burst  = 25
	refill = 5 * time.Minute
)

const combinedPrefix = "(combined from similar events): "

// correlator decides what to do with an event: write a new Event, raise a count, or drop it. It is used by one
// goroutine and does no I/O.
type correlator struct {
	written map[identity]*counted
	similar map[identity]*group
	budgets map[identity]*budget
}

// identity has the fields by which two events count as the same; some are left empty for the coarser maps.
type identity struct {
	ref                    corev1.ObjectReference
	eventtype, reason, msg string
}

// counted is an Event in the store, as last written.
type counted struct {
	namespace, name string
	count           int32
	seen            time.Time
}

type group struct {
	messages map[string]struct{}
	last     time.Time
}

type budget struct {
	left float64
	at   time.Time
}

// decision is the correlator's decision about a record.
type decision struct {
	drop     bool
	id       identity
	msg      string
	existing *counted // not nil: raise its count
}

func newCorrelator() *correlator {
	return &correlator{written: map[identity]*counted{}, similar: map[identity]*group{},
		budgets: map[identity]*budget{}}
}

func (c *correlator) decide(rec record) decision {
	ref := rec.ref
	ref.ResourceVersion = ""
	id := identity{ref: ref, eventtype: rec.eventtype, reason: rec.reason}
	msg := rec.msg
	if c.combined(id, rec) {
		msg = clip(combinedPrefix + rec.msg)
		id.msg = combinedPrefix
	} else {
		id.msg = rec.msg
	}
	v := decision{id: id, msg: msg, existing: c.written[id]}
	v.drop = !c.spend(identity{ref: ref}, rec.at)
	return v
}

// combined records rec and reports whether there were too many like it lately.
func (c *correlator) combined(id identity, rec record) bool {
	g := c.similar[id]
	if g == nil || rec.at.Sub(g.last) > combineWindow {
		makeRoom(c.similar, func(g *group) time.Time { return g.last })
		g = &group{messages: map[string]struct{}{}}
		c.similar[id] = g
	}
	g.last = rec.at
	if len(g.messages) < combineAfter {
		g.messages[rec.msg] = struct{}{}
	}
	return len(g.messages) >= combineAfter
}

// spend takes one event from an object's budget; false: it is used up.
func (c *correlator) spend(id identity, at time.Time) bool {
	b := c.budgets[id]
	if b == nil {
		makeRoom(c.budgets, func(b *budget) time.Time { return b.at })
		b = &budget{left: burst, at: at}
		c.budgets[id] = b
	}
	if d := at.Sub(b.at); d > 0 {
		b.left = min(burst, b.left+float64(d)/float64(refill))
		b.at = at
	}
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

// wrote remembers an Event, to be counted up when the same comes again.
func (c *correlator) wrote(id identity, ev *corev1.Event, at time.Time) {
	if _, ok := c.written[id]; !ok {
		makeRoom(c.written, func(w *counted) time.Time { return w.seen })
	}
	c.written[id] = &counted{namespace: ev.Namespace, name: ev.Name, count: ev.Count, seen: at}
}

// makeRoom drops an old entry of a full map. It looks at only a few entries, to be cheap; which old one is dropped
// does not matter.
func makeRoom[V any](m map[identity]V, age func(V) time.Time) {
	if len(m) < maxRemembered {
		return
	}
	var oldest identity
	var when time.Time
	n := 0
	for id, v := range m {
		if t := age(v); n == 0 || t.Before(when) {
			oldest, when = id, t
		}
		if n++; n == 64 {
			break
		}
	}
	delete(m, oldest)
}

// eventName is unique per object and time stamp, and readable: the object's name comes first.
func eventName(object string, nano int64) string {
	const digits = "0123456789abcdef"
	var b strings.Builder
	b.WriteString(object)
	b.WriteByte('.')
	for shift := 60; shift >= 0; shift -= 4 {
		b.WriteByte(digits[nano>>shift&0xf])
	}
	return b.String()
}
