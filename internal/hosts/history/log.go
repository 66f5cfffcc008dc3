package history

import (
	"fmt"
	"slices"
	"time"
)

// log is what all watches together have shown: each change once, by revision.
type log struct {
	changes []*change
	at      map[int64]*change
	// complete is the revision up to which there is a watch for every revision since the start.
	complete int64
}

// change is a version of an object, or its deletion.
type change struct {
	Event
	seen time.Duration // when the first watch showed it: it had taken place then
}

// merge puts the watches together. Two that show different things at a revision are a problem.
func merge(h *History, p *problems) *log {
	l := &log{at: map[int64]*change{}, complete: h.Start}
	for _, w := range h.Watches {
		for _, e := range w.Events {
			if e.Type == Bookmark {
				continue
			}
			have := l.at[e.Revision]
			switch {
			case have == nil:
				l.at[e.Revision] = &change{e, e.At}
			case have.Type != e.Type || have.Item != e.Item:
				p.add("", "watches disagree at revision %d: %s %+v by one, and by watcher %d on %s %s %+v", e.Revision, have.Type, have.Item, w.Watcher, w.Master, e.Type, e.Item)
			default:
				have.seen = min(have.seen, e.At)
			}
		}
	}
	for _, c := range l.at {
		l.changes = append(l.changes, c)
	}
	slices.SortFunc(l.changes, func(a, b *change) int { return int(a.Revision - b.Revision) })
	// A watch is good for all revisions from its start to the last it has shown.
	all := slices.Clone(h.Watches)
	slices.SortFunc(all, func(a, b *Watch) int { return int(a.After - b.After) })
	for _, w := range all {
		if w.After <= l.complete {
			l.complete = max(l.complete, w.Reached)
		}
	}
	return l
}

// between are the changes after one revision up to another.
func (l *log) between(after, to int64) []*change {
	first, _ := slices.BinarySearchFunc(l.changes, after+1, func(c *change, rev int64) int { return int(c.Revision - rev) })
	end, _ := slices.BinarySearchFunc(l.changes, to+1, func(c *change, rev int64) int { return int(c.Revision - rev) })
	return l.changes[first:max(first, end)]
}

// state is what there is at a revision.
func (l *log) state(h *History, at int64) map[string]Item {
	out := map[string]Item{}
	for _, c := range l.between(h.Start, at) {
		if c.Type == Deleted {
			delete(out, c.Key)
		} else {
			out[c.Key] = c.Item
		}
	}
	return out
}

// checkWatches judges each watch by itself and against what all have shown.
func checkWatches(h *History, l *log, p *problems) {
	for _, w := range h.Watches {
		name := fmt.Sprintf("watcher %d on %s after %d (opened at %s)", w.Watcher, w.Master, w.After, w.Call)
		last, shown := w.After, map[int64]bool{}
		for i, e := range w.Events {
			switch {
			case e.Type == Bookmark && e.Revision < last:
				p.add("", "%s: a bookmark goes back from revision %d to %d", name, last, e.Revision)
			case e.Type == Bookmark:
			case shown[e.Revision]:
				p.add(e.Key, "%s: shows revision %d twice: %s %+v", name, e.Revision, e.Type, e.Item)
			case e.Revision <= last && i > 0 && w.Events[i-1].Type == Bookmark:
				p.add(e.Key, "%s: a bookmark was ahead: after that at %d comes %s %+v", name, last, e.Type, e.Item)
			case e.Revision <= w.After:
				p.add(e.Key, "%s: shows what was before it: %s %+v", name, e.Type, e.Item)
			case e.Revision <= last:
				p.add(e.Key, "%s: goes back from revision %d to %s %+v", name, last, e.Type, e.Item)
			}
			shown[e.Revision] = shown[e.Revision] || e.Type != Bookmark
			last = max(last, e.Revision)
		}
		for _, c := range l.between(w.After, w.Reached) {
			if !shown[c.Revision] {
				p.add(c.Key, "%s: skips revision %d, though it comes to %d: %s %+v", name, c.Revision, w.Reached, c.Type, c.Item)
			}
		}
	}
	checkTypes(h, l, p)
}

// checkTypes follows the objects through the log: what is added was not there, what is modified or deleted was.
func checkTypes(h *History, l *log, p *problems) {
	there := map[string]Item{}
	for _, c := range l.between(h.Start, l.complete) {
		before, was := there[c.Key]
		switch {
		case c.Type == Added && was:
			p.add(c.Key, "the watches show at revision %d that %s is added, though it is there since %d", c.Revision, c.Key, before.Revision)
		case c.Type != Added && !was:
			p.add(c.Key, "the watches show at revision %d that %s is %s, though there is none", c.Revision, c.Key, c.Type)
		case c.Type != Added && before.UID != c.UID:
			p.add(c.Key, "the watches show at revision %d that %s is %s with UID %s, though it has %s", c.Revision, c.Key, c.Type, c.UID, before.UID)
		case c.Type == Deleted && before.Value != c.Value:
			p.add(c.Key, "the watches show at revision %d that %s is deleted with the value %s, though it has %s", c.Revision, c.Key, c.Value, before.Value)
		}
		if there[c.Key] = c.Item; c.Type == Deleted {
			delete(there, c.Key)
		}
	}
}
