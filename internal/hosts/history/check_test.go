package history

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// story makes a history by hand: each line of it takes place after the one before.
type story struct {
	*History
	clock time.Duration
}

func newStory() *story { return &story{History: &History{Seed: 7, Start: 10}} }

func (s *story) tick() time.Duration { s.clock += time.Millisecond; return s.clock }

// ask adds a request with its answer.
func (s *story) ask(o Op) *Op {
	if o.Call == 0 {
		o.Call = s.tick()
	}
	if o.Return == 0 {
		o.Return = s.tick()
	}
	if o.Outcome == "" {
		o.Outcome = OK
	}
	s.Ops = append(s.Ops, &o)
	return &o
}

// write is an acknowledged write.
func (s *story) write(k Kind, key, value string, version, revision int64) *Op {
	return s.ask(Op{Kind: k, Key: key, Value: value, Version: version, Read: Item{key, revision, value, "u-" + key}})
}

func (s *story) get(key, value string, revision int64) *Op {
	if revision == 0 {
		return s.ask(Op{Kind: Get, Key: key, Outcome: Refused, Code: 404})
	}
	return s.ask(Op{Kind: Get, Key: key, Read: Item{key, revision, value, "u-" + key}})
}

func (s *story) remove(key string) *Op {
	return s.ask(Op{Kind: Delete, Key: key, Read: Item{Key: key, UID: "u-" + key}})
}

// finally is the list at the end.
func (s *story) finally(revision int64, items ...Item) {
	s.Finals = append(s.Finals, &Op{Kind: List, Call: s.tick(), Return: s.tick(), Outcome: OK, Revision: revision, Items: items})
}

// watch adds a watch.
func (s *story) watch(after int64, events ...Event) *Watch {
	w := &Watch{After: after, Call: s.tick(), Events: events}
	for i := range events {
		if w.Events[i].At = s.tick(); w.Events[i].Key != "" {
			w.Events[i].UID = "u-" + w.Events[i].Key
		}
		w.Reached = max(w.Reached, events[i].Revision)
	}
	s.Watches = append(s.Watches, w)
	return w
}

func event(kind, key, value string, revision int64) Event {
	return Event{Type: kind, Item: Item{Key: key, Revision: revision, Value: value}}
}

func mark(revision int64) Event { return Event{Type: Bookmark, Item: Item{Revision: revision}} }

func item(key, value string, revision int64) Item { return Item{key, revision, value, "u-" + key} }

// What clients have seen of a cluster that keeps its promises.
func TestGoodHistories(t *testing.T) {
	for name, tell := range map[string]func(s *story){
		"one after the other": func(s *story) {
			s.get("a", "", 0)
			s.write(Create, "a", "v1", 0, 11)
			s.get("a", "v1", 11)
			s.write(Update, "a", "v2", 11, 12)
			s.ask(Op{Kind: Update, Key: "a", Value: "v3", Version: 11, Outcome: Refused, Code: 409})
			s.ask(Op{Kind: Create, Key: "a", Value: "v4", Outcome: Refused, Code: 409})
			s.ask(Op{Kind: List, Revision: 12, Items: []Item{item("a", "v2", 12)}})
			s.write(Create, "b", "v5", 0, 13)
			s.remove("a")
			s.get("a", "", 0)
			s.watch(10, event(Added, "a", "v1", 11), event(Modified, "a", "v2", 12), mark(12), event(Added, "b", "v5", 13), event(Deleted, "a", "v2", 14), mark(14))
			s.watch(12, event(Added, "b", "v5", 13), event(Deleted, "a", "v2", 14))
			s.finally(14, item("b", "v5", 13))
		},
		"open, without watches: it may have been carried out late": func(s *story) {
			s.ask(Op{Kind: Create, Key: "a", Value: "v1", Outcome: Unknown})
			s.get("a", "", 0)
			s.get("a", "v1", 15)
			s.ask(Op{Kind: Replace, Key: "a", Value: "v2", Outcome: Unknown})
			s.ask(Op{Kind: Delete, Key: "a", Outcome: Unknown})
			s.get("a", "v1", 15)
			s.get("a", "", 0)
			s.ask(Op{Kind: Create, Key: "a", Value: "v3", Outcome: Unknown})
			s.ask(Op{Kind: Update, Key: "a", Value: "v4", Version: 15, Outcome: Refused, Code: 409})
			s.ask(Op{Kind: Delete, Key: "a", Outcome: Unknown})
			s.finally(30)
		},
		"open, without watches: never carried out": func(s *story) {
			s.ask(Op{Kind: Create, Key: "a", Value: "v1", Outcome: Unknown})
			s.ask(Op{Kind: Delete, Key: "a", Outcome: Unknown})
			s.get("a", "", 0)
			s.write(Create, "a", "v2", 0, 11)
			s.get("a", "v2", 11)
			s.finally(11, item("a", "v2", 11))
		},
		"open, and the watches tell": func(s *story) {
			s.ask(Op{Kind: Create, Key: "a", Value: "v1", Outcome: Unknown})
			s.ask(Op{Kind: Delete, Key: "a", Outcome: Unknown})
			s.ask(Op{Kind: Delete, Key: "a", Outcome: Unknown})
			s.ask(Op{Kind: Replace, Key: "a", Value: "v9", Outcome: Unknown})
			s.watch(10, event(Added, "a", "v1", 11))
			s.watch(11, event(Deleted, "a", "v1", 12))
			s.finally(12)
		},
		"many open at once": func(s *story) {
			for i := range 40 {
				s.ask(Op{Kind: Replace, Key: "a", Value: fmt.Sprint("x", i), Outcome: Unknown})
				s.ask(Op{Kind: Delete, Key: "a", Outcome: Unknown})
			}
			s.write(Create, "a", "v1", 0, 11)
			s.get("a", "v1", 11)
			s.watch(10, event(Added, "a", "v1", 11))
			s.finally(11, item("a", "v1", 11))
		},
		"at the same time": func(s *story) {
			s.write(Create, "a", "v1", 0, 11)
			s.ask(Op{Kind: Get, Key: "a", Call: 5 * time.Millisecond, Return: 9 * time.Millisecond, Read: item("a", "v1", 11)})
			s.ask(Op{Kind: Replace, Key: "a", Value: "v2", Call: 4 * time.Millisecond, Return: 8 * time.Millisecond, Read: item("a", "v2", 12)})
		},
		"a fault of which nobody hears": func(s *story) {
			s.write(Create, "a", "v1", 0, 11)
			s.ask(Op{Kind: Update, Key: "a", Value: "v2", Version: 11, Outcome: Refused, Code: 503})
			s.ask(Op{Kind: Update, Key: "a", Value: "v3", Version: 11, Outcome: Refused})
			s.get("a", "v1", 11)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory()
			tell(s)
			for _, p := range Check(s.History) {
				t.Error(p)
			}
		})
	}
}

// Each broken promise is found. What else is said of it does not matter.
func TestBadHistories(t *testing.T) {
	for name, c := range map[string]struct {
		tell func(s *story)
		want string
	}{
		"a lost write": {func(s *story) {
			s.write(Create, "a", "v1", 0, 11)
			s.write(Update, "a", "v2", 11, 12)
			s.finally(13, item("a", "v1", 11))
		}, "an acknowledged write is lost"},
		"a lost object": {func(s *story) {
			s.remove("a").Call = 0
			s.Ops[0].Outcome, s.Ops[0].Code = Refused, 404
			s.write(Create, "a", "v1", 0, 11)
			s.finally(13)
		}, "an acknowledged write is lost"},
		"a lost write that the watches have shown": {func(s *story) {
			s.write(Create, "a", "v1", 0, 11)
			s.watch(10, event(Added, "a", "v1", 11), mark(12))
			s.finally(12)
		}, "a list at revision 12 lacks"},
		"a write that no watch shows": {func(s *story) {
			s.write(Create, "a", "v1", 0, 11)
			s.watch(10, mark(13))
			s.finally(13, item("a", "v1", 11))
		}, "no watch shows an acknowledged write"},
		"a deletion that no watch shows": {func(s *story) {
			s.write(Create, "a", "v1", 0, 11)
			s.remove("a")
			s.watch(10, event(Added, "a", "v1", 11), mark(13))
			s.finally(13)
		}, "no watch shows an acknowledged deletion"},
		"a stale read": {func(s *story) {
			s.write(Create, "a", "v1", 0, 11)
			s.write(Update, "a", "v2", 11, 12)
			s.get("a", "v1", 11)
		}, "no order of its 3 requests"},
		"a stale 404": {func(s *story) {
			s.write(Create, "a", "v1", 0, 11)
			s.get("a", "", 0)
		}, "no order"},
		"a stale list": {func(s *story) {
			s.write(Create, "a", "v1", 0, 11)
			s.ask(Op{Kind: List, Revision: 10})
		}, "had ended before"},
		"an open write that comes and goes": {func(s *story) {
			s.write(Create, "a", "v1", 0, 11)
			s.ask(Op{Kind: Replace, Key: "a", Value: "v2", Outcome: Unknown})
			s.get("a", "v2", 12)
			s.get("a", "v1", 11)
		}, "no order"},
		"two updates of one version": {func(s *story) {
			s.write(Create, "a", "v1", 0, 11)
			s.write(Update, "a", "v2", 11, 12)
			s.write(Update, "a", "v3", 11, 13)
		}, "no order"},
		"two deletions of one object": {func(s *story) {
			s.write(Create, "a", "v1", 0, 11)
			s.remove("a")
			s.remove("a")
		}, "no order"},
		"a create of what is there": {func(s *story) {
			s.write(Create, "a", "v1", 0, 11)
			s.write(Create, "a", "v2", 0, 12)
		}, "no order"},
		"a conflict without another": {func(s *story) {
			s.write(Create, "a", "v1", 0, 11)
			s.ask(Op{Kind: Update, Key: "a", Value: "v2", Version: 11, Outcome: Refused, Code: 409})
		}, "no order"},
		"revisions against time": {func(s *story) {
			s.write(Create, "a", "v1", 0, 12)
			s.write(Create, "b", "v2", 0, 11)
		}, "had ended before"},
		"a refused write that was carried out": {func(s *story) {
			s.ask(Op{Kind: Create, Key: "a", Value: "v1", Outcome: Refused, Code: 503})
			s.watch(10, event(Added, "a", "v1", 11))
		}, "a write that was refused was carried out"},
		"a write carried out twice": {func(s *story) {
			s.write(Create, "a", "v1", 0, 11)
			s.remove("a")
			again := event(Added, "a", "v1", 13)
			s.watch(10, event(Added, "a", "v1", 11), event(Deleted, "a", "v1", 12), again)
		}, "carried out twice, at revisions 11 and 13"},
		"a write that nobody made": {func(s *story) {
			s.watch(10, event(Added, "a", "v1", 11))
		}, "a write that nobody made"},
		"a deletion that nobody asked for": {func(s *story) {
			s.write(Create, "a", "v1", 0, 11)
			s.watch(10, event(Added, "a", "v1", 11), event(Deleted, "a", "v1", 12))
		}, "a deletion that nobody asked for"},
		"an event with another object": {func(s *story) {
			s.write(Create, "a", "v1", 0, 11).Read.UID = "another"
			s.watch(10, event(Added, "a", "v1", 11))
		}, "of a write that was acknowledged with"},
		"an event before its cause": {func(s *story) {
			s.watch(10, event(Added, "a", "v1", 11))
			s.write(Create, "a", "v1", 0, 11)
		}, "before it was asked for"},
		"a watch that skips": {func(s *story) {
			three(s)
			s.watch(10, event(Added, "a", "v1", 11), event(Added, "b", "v2", 12), event(Modified, "a", "v3", 13))
			s.watch(10, event(Added, "a", "v1", 11), event(Modified, "a", "v3", 13))
		}, "skips revision 12"},
		"a watch that skips where it resumes": {func(s *story) {
			three(s)
			s.watch(10, event(Added, "a", "v1", 11), event(Added, "b", "v2", 12), event(Modified, "a", "v3", 13))
			s.watch(11, event(Modified, "a", "v3", 13))
		}, "skips revision 12"},
		"a watch that skips, by a bookmark": {func(s *story) {
			three(s)
			s.watch(10, event(Added, "a", "v1", 11), event(Added, "b", "v2", 12), event(Modified, "a", "v3", 13))
			s.watch(11, mark(13))
		}, "skips revision 12"},
		"a watch that goes back": {func(s *story) {
			three(s)
			s.watch(10, event(Added, "a", "v1", 11), event(Modified, "a", "v3", 13), event(Added, "b", "v2", 12))
		}, "goes back from revision 13"},
		"a watch that doubles": {func(s *story) {
			three(s)
			s.watch(10, event(Added, "a", "v1", 11), event(Added, "b", "v2", 12), event(Added, "b", "v2", 12), event(Modified, "a", "v3", 13))
		}, "shows revision 12 twice"},
		"a watch that doubles where it resumes": {func(s *story) {
			three(s)
			s.watch(12, event(Added, "b", "v2", 12), event(Modified, "a", "v3", 13))
		}, "shows what was before it"},
		"a bookmark ahead": {func(s *story) {
			three(s)
			s.watch(10, event(Added, "a", "v1", 11), mark(13), event(Added, "b", "v2", 12), event(Modified, "a", "v3", 13))
		}, "a bookmark was ahead"},
		"a bookmark that goes back": {func(s *story) {
			three(s)
			s.watch(10, event(Added, "a", "v1", 11), event(Added, "b", "v2", 12), mark(11))
		}, "a bookmark goes back"},
		"a change of the wrong type": {func(s *story) {
			three(s)
			s.watch(10, event(Added, "a", "v1", 11), event(Added, "b", "v2", 12), event(Added, "a", "v3", 13))
		}, "is added, though it is there"},
		"watches that disagree": {func(s *story) {
			three(s)
			s.watch(10, event(Added, "a", "v1", 11))
			s.watch(10, event(Modified, "a", "v1", 11))
		}, "watches disagree"},
		"a list that is no state": {func(s *story) {
			three(s)
			s.watch(10, event(Added, "a", "v1", 11), event(Added, "b", "v2", 12), event(Modified, "a", "v3", 13))
			s.ask(Op{Kind: List, Revision: 13, Items: []Item{item("a", "v1", 11), item("b", "v2", 12)}})
		}, "a list at revision 13 has"},
		"no list at the end": {func(s *story) {
			s.Finals = append(s.Finals, &Op{Kind: List, Outcome: Unknown, Master: "m2"})
		}, "no list at the end from m2"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory()
			c.tell(s)
			var all []string
			for _, p := range Check(s.History) {
				all = append(all, p.String())
			}
			if !strings.Contains(strings.Join(all, "\n"), c.want) {
				t.Errorf("not found; it said %q", all)
			}
		})
	}
}

// three are writes at the revisions 11 to 13.
func three(s *story) {
	s.write(Create, "a", "v1", 0, 11)
	s.write(Create, "b", "v2", 0, 12)
	s.write(Update, "a", "v3", 11, 13)
}

// A failure leaves what a person needs, and the history can be checked again.
func TestRecordOfAFailure(t *testing.T) {
	s := newStory()
	three(s)
	s.get("a", "v1", 11)
	s.addFault("kill m1")
	dir := t.TempDir()
	err := Judge(s.History, dir)
	to := filepath.Join(dir, "seed-7-round-0")
	if err == nil || !strings.Contains(err.Error(), to) {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"problems.txt": "seed 7", "a.html": "kill m1", "history.json": "kill m1"} {
		b, err := os.ReadFile(filepath.Join(to, name))
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s: %v: %.200s", name, err, b)
		}
	}
	again, err := Load(filepath.Join(to, "history.json"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(Check(again)), fmt.Sprint(Check(s.History)); got != want {
		t.Errorf("checked again: %s\nbefore: %s", got, want)
	}
}

// What an answer means decides whether a request stays open.
func TestOutcomes(t *testing.T) {
	lost := fmt.Errorf("the connection is lost")
	for _, c := range []struct {
		code int
		sent bool
		err  error
		want Outcome
	}{
		{0, false, lost, Refused}, {0, true, lost, Unknown}, {201, true, lost, Unknown}, {201, true, nil, OK}, {404, true, nil, Refused},
		{409, true, nil, Refused}, {429, true, nil, Refused}, {500, true, nil, Unknown}, {503, true, nil, Refused}, {504, true, nil, Unknown},
		{507, true, nil, Refused},
	} {
		if got := outcome(c.code, c.sent, c.err); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
