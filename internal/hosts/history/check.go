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

// settled is a request with what it came to.
type settled struct {
	*Op
	result
	end time.Duration // by when it had come to that; never for what is open
}

// settle finds what each request came to: from its answer, or else from the watches. It also judges the watches by the
// answers, and the other way round.
func settle(h *History, l *log, p *problems) []*settled {
	ops, byValue, first := make([]*settled, len(h.Ops)), map[string]*settled{}, h.Start
	for i, o := range h.Ops {
		s := &settled{Op: o, end: o.Return, result: result{outcome: o.Outcome, code: o.Code, revision: o.Read.Revision, value: o.Read.Value}}
		if o.Outcome == Unknown {
			s.end = never
		}
		if ops[i] = s; o.Value != "" {
			byValue[o.Value] = s
		}
		if o.writes() && o.Outcome == OK {
			first = max(first, o.Read.Revision)
		}
		if o.Outcome == OK && (o.Kind == Create || o.Kind == Update || o.Kind == Replace) && o.Read.Value != o.Value {
			p.add(o.Key, "a write was answered with another's value: %s", o)
		}
	}
	// All writes are told by the watches if these come to what was there after the last of them.
	complete := len(h.Finals) > 0
	for _, f := range h.Finals {
		complete = complete && f.Outcome == OK && l.complete >= f.Revision
	}
	written := settleWrites(h, l, byValue, p)
	settleReads(ops, h.Finals, byValue, written)
	for _, s := range ops {
		switch {
		case !s.writes() || s.Kind == Delete:
		case s.Outcome == OK && s.revision <= l.complete && written[s.Op] == 0:
			p.add(s.Key, "no watch shows an acknowledged write: %s", s)
		case s.outcome == Unknown && complete:
			s.outcome = Refused // it was never carried out
		}
	}
	settleDeletes(ops, l, complete, p)
	return ops
}

// settleWrites finds the changes that requests have made. It returns the revision at which each did.
func settleWrites(h *History, l *log, byValue map[string]*settled, p *problems) map[*Op]int64 {
	written := map[*Op]int64{}
	for _, c := range l.changes {
		if c.Type == Deleted {
			continue
		}
		s := byValue[c.Value]
		switch {
		case s == nil || s.Key != c.Key:
			p.add(c.Key, "the watches show a write that nobody made: %s %+v", c.Type, c.Item)
		case written[s.Op] != 0:
			p.add(c.Key, "a write was carried out twice, at revisions %d and %d: %s", written[s.Op], c.Revision, s)
		case s.Outcome == Refused:
			p.add(c.Key, "a write that was refused was carried out at revision %d: %s", c.Revision, s)
		case s.Outcome == OK && (s.Read != c.Item):
			p.add(c.Key, "the watches show %+v of a write that was acknowledged with %+v: %s", c.Item, s.Read, s)
		case s.Outcome == OK && c.seen < s.Call:
			p.add(c.Key, "the watches show a write before it was asked for: %s", s)
		case s.Outcome == Unknown:
			s.outcome, s.revision, s.value, s.end = OK, c.Revision, c.Value, c.seen
		}
		if s != nil {
			written[s.Op] = c.Revision
		}
	}
	return written
}

// settleReads finds writes without an answer whose value was read.
func settleReads(ops []*settled, finals []*Op, byValue map[string]*settled, written map[*Op]int64) {
	read := func(it Item, at time.Duration) {
		s := byValue[it.Value]
		if s == nil || s.Key != it.Key || s.Outcome != Unknown {
			return
		}
		s.outcome, s.revision, s.value, s.end = OK, it.Revision, it.Value, min(s.end, at)
		written[s.Op] = it.Revision
	}
	for _, s := range ops {
		if s.Kind == Get && s.Outcome == OK {
			read(s.Read, s.Return)
		}
		for _, it := range s.Items {
			read(it, s.Return)
		}
	}
	for _, f := range finals {
		for _, it := range f.Items {
			read(it, f.Return)
		}
	}
}

// settleDeletes matches deletions with the requests for them: an acknowledged one names the UID, one without an answer does
// not. Of the latter, the first asked for is taken for the first deletion: if any matching is possible, this one is.
func settleDeletes(ops []*settled, l *log, complete bool, p *problems) {
	deletions := map[string]*change{} // by UID
	for _, c := range l.changes {
		if c.Type == Deleted {
			deletions[c.UID] = c
		}
	}
	open := map[string][]*settled{} // by key
	for _, s := range ops {
		switch {
		case s.Kind != Delete || s.outcome == Refused:
		case s.outcome == Unknown:
			open[s.Key] = append(open[s.Key], s)
		default:
			c := deletions[s.Read.UID]
			switch {
			case c != nil && c.Key == s.Key:
				s.revision = c.Revision
				delete(deletions, s.Read.UID)
			case complete:
				p.add(s.Key, "no watch shows an acknowledged deletion, or one that another was acknowledged for: %s", s)
			}
		}
	}
	for _, list := range open {
		slices.SortStableFunc(list, func(a, b *settled) int { return int(a.Call - b.Call) })
	}
	for _, c := range l.changes {
		if c.Type != Deleted || deletions[c.UID] != c {
			continue
		}
		list := open[c.Key]
		i := slices.IndexFunc(list, func(s *settled) bool { return s.Call < c.seen && (s.Version == 0 || s.Version == before(l, c)) })
		if i < 0 {
			p.add(c.Key, "the watches show a deletion that nobody asked for: %+v", c.Item)
			continue
		}
		s := list[i]
		s.outcome, s.revision, s.end = OK, c.Revision, c.seen
		open[c.Key] = slices.Delete(list, i, i+1)
	}
	if !complete {
		return
	}
	for _, list := range open {
		for _, s := range list {
			s.outcome = Refused
		}
	}
}

// before is the revision of the version that a deletion has ended.
func before(l *log, c *change) int64 {
	for _, b := range slices.Backward(l.between(0, c.Revision-1)) {
		if b.Key == c.Key {
			return b.Revision
		}
	}
	return 0
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
