package history

import (
	"slices"
	"time"
)

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
