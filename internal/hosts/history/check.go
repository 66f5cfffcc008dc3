package history

import (
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// Problem is a promise that was not kept.
type Problem struct {
	Key  string // of the object, if it is about one
	Text string
}

func (p Problem) String() string {
	if p.Key == "" {
		return p.Text
	}
	return p.Key + ": " + p.Text
}

// problems collects them.
type problems struct {
	all []Problem
	// drawings are porcupine's, of the objects that are not linearizable.
	drawings map[string]porcupine.LinearizationInfo
}

func (p *problems) add(key, format string, args ...any) {
	p.all = append(p.all, Problem{key, fmt.Sprintf(format, args...)})
}

// searchLimit bounds the search for an order of one object's requests. With what the watches tell it takes milliseconds.
const searchLimit = 60 * time.Second

// Check returns what is wrong with a history.
func Check(h *History) []Problem { return check(h).all }

func check(h *History) *problems {
	p := &problems{drawings: map[string]porcupine.LinearizationInfo{}}
	l := merge(h, p)
	checkWatches(h, l, p)
	ops := settle(h, l, p)
	checkTime(ops, p)
	checkLists(h, l, p)
	checkFinals(h, ops, p)
	checkObjects(h, ops, p)
	return p
}

// checkTime compares revisions with time, over all objects.
func checkTime(ops []*settled, p *problems) {
	type moment struct {
		at  time.Duration
		op  *settled
		rev int64
	}
	var ends, calls []moment
	for _, s := range ops {
		rev := s.revision
		if s.Kind == List {
			rev = s.Revision
		}
		if s.outcome != OK || rev == 0 {
			continue
		}
		if s.writes() || s.Kind == List { // a Get's revision is the object's
			calls = append(calls, moment{s.Call, s, rev})
		}
		ends = append(ends, moment{s.end, s, rev})
	}
	byTime := func(a, b moment) int { return int(a.at - b.at) }
	slices.SortFunc(ends, byTime)
	slices.SortFunc(calls, byTime)
	var newest moment
	for _, c := range calls {
		for len(ends) > 0 && ends[0].at < c.at {
			if ends[0].rev > newest.rev {
				newest = ends[0]
			}
			ends = ends[1:]
		}
		if c.rev < newest.rev || c.rev == newest.rev && c.op.writes() {
			p.add(c.op.Key, "revision %d is of %s, but this had ended before with %d: %s", c.rev, c.op, newest.rev, newest.op)
		}
	}
}

// checkLists compares lists with what the watches say there was at their revision.
func checkLists(h *History, l *log, p *problems) {
	for _, o := range slices.Concat(h.Ops, h.Finals) {
		if o.Kind != List || o.Outcome != OK || o.Revision > l.complete {
			continue
		}
		want, got := l.state(h, o.Revision), map[string]Item{}
		for _, it := range o.Items {
			got[it.Key] = it
			if want[it.Key] != it {
				p.add(it.Key, "a list at revision %d has %+v, and the watches have %+v: %s", o.Revision, it, want[it.Key], o)
			}
		}
		for k, it := range want {
			if _, ok := got[k]; !ok {
				p.add(k, "a list at revision %d lacks %+v: %s", o.Revision, it, o)
			}
		}
	}
}

// checkFinals looks for acknowledged writes that are neither there at the end nor overwritten.
func checkFinals(h *History, ops []*settled, p *problems) {
	for _, f := range h.Finals {
		if f.Outcome != OK {
			p.add("", "there is no list at the end from %s: %s", f.Master, f)
			continue
		}
		there := map[string]Item{}
		for _, it := range f.Items {
			there[it.Key] = it
		}
		deleted := map[string]time.Duration{} // when the last deletion may have been carried out
		for _, s := range ops {
			if s.Kind == Delete && s.outcome != Refused {
				deleted[s.Key] = max(deleted[s.Key], s.end)
			}
		}
		for _, s := range ops {
			if s.Outcome != OK || !s.writes() || s.Kind == Delete {
				continue
			}
			it, ok := there[s.Key]
			if ok && it.Revision < s.revision || !ok && deleted[s.Key] < s.Call {
				p.add(s.Key, "an acknowledged write is lost: at the end %s has %+v: %s", f.Master, it, s)
			}
		}
	}
}

// checkObjects has porcupine look for an order of each object's requests.
func checkObjects(h *History, ops []*settled, p *problems) {
	byKey := map[string][]porcupine.Operation{}
	add := func(key string, client int, o *Op, r result, end time.Duration) {
		byKey[key] = append(byKey[key], porcupine.Operation{ClientId: client, Input: o, Call: int64(o.Call), Output: r, Return: int64(end),
			Metadata: o.Master + " " + o.Why})
	}
	for _, s := range ops {
		if s.Kind != List {
			byKey[s.Key] = nil
		}
	}
	for _, s := range ops {
		switch {
		case s.Kind == List:
		case s.outcome == Unknown && !s.writes(), s.outcome == Refused && s.Outcome == Unknown:
		case s.outcome == Refused && s.code != 404 && s.code != 409:
		default:
			add(s.Key, s.Client, s.Op, s.result, s.end)
		}
	}
	var lists []*Op // each is a Get of each object
	for _, s := range ops {
		if s.Kind == List && s.Outcome == OK {
			lists = append(lists, s.Op)
		}
	}
	for _, o := range append(lists, h.Finals...) {
		if o.Outcome != OK {
			continue
		}
		there := map[string]Item{}
		for _, it := range o.Items {
			there[it.Key] = it
		}
		for k := range byKey {
			get, r := *o, result{outcome: Refused, code: 404}
			get.Kind, get.Key = Get, k
			if it, ok := there[k]; ok {
				r = result{outcome: OK, revision: it.Revision, value: it.Value}
			}
			add(k, o.Client, &get, r, o.Return)
		}
	}
	m := model(h.Start)
	for k, list := range byKey {
		switch porcupine.CheckOperationsTimeout(m, list, searchLimit) {
		case porcupine.Illegal:
			_, info := porcupine.CheckOperationsVerbose(m, list, searchLimit)
			p.drawings[k] = info
			p.add(k, "no order of its %d requests agrees with their answers", len(list))
		case porcupine.Unknown:
			p.add(k, "no order of its %d requests was found in %s", len(list), searchLimit)
		}
	}
}
