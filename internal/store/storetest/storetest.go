// Package storetest is the contract of store.Store, as tests that every implementation runs.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"minik8s/internal/store"
)

// Run checks the store that open makes; each test gets a new, empty one.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	for name, test := range map[string]func(*testing.T, store.Store){
		"create, get, update, delete":                 crud,
		"a stale write is refused":                    stale,
		"a write of several keys is all or nothing":   several,
		"of writers that exclude each other one wins": exclusive,
		"one of many writers wins":                    race,
		"list pages at one revision":                  pages,
		"watch misses nothing, repeats nothing":       watchAll,
		"watch resumes, and ends when compacted":      watchResume,
		"history tells all, and what was before":      history,
		"revision covers acknowledged writes":         revision,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func ctx(t *testing.T) context.Context {
	c, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return c
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func wantErr(t *testing.T, want error) func(any, error) {
	return func(_ any, err error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Fatalf("got %v, want %v", err, want)
		}
	}
}

func crud(t *testing.T, s store.Store) {
	c := ctx(t)
	wantErr(t, store.ErrNotFound)(s.Get(c, "/a/x"))
	r1 := must[int64](t)(s.Write(c, store.Create("/a/x", []byte("1"))))
	wantErr(t, store.ErrExists)(s.Write(c, store.Create("/a/x", []byte("2"))))
	r2 := must[int64](t)(s.Write(c, store.Update("/a/x", []byte("2"), r1)))
	kv := must[store.KV](t)(s.Get(c, "/a/x"))
	if string(kv.Value) != "2" || kv.Created != r1 || kv.Modified != r2 || r2 <= r1 {
		t.Fatalf("got %+v after revisions %d and %d", kv, r1, r2)
	}
	must[int64](t)(s.Write(c, store.Delete("/a/x", r2)))
	wantErr(t, store.ErrNotFound)(s.Get(c, "/a/x"))
	wantErr(t, store.ErrNotFound)(s.Write(c, store.Delete("/a/x", r2)))
	wantErr(t, store.ErrNotFound)(s.Write(c, store.Update("/a/x", nil, r2)))
	must[int64](t)(s.Write(c, store.Create("/a/x", []byte("again"))))
}

func stale(t *testing.T, s store.Store) {
	c := ctx(t)
	r1 := must[int64](t)(s.Write(c, store.Create("/a/x", []byte("1"))))
	must[int64](t)(s.Write(c, store.Update("/a/x", []byte("2"), r1)))
	wantErr(t, store.ErrConflict)(s.Write(c, store.Update("/a/x", []byte("3"), r1)))
	wantErr(t, store.ErrConflict)(s.Write(c, store.Delete("/a/x", r1)))
	if kv := must[store.KV](t)(s.Get(c, "/a/x")); string(kv.Value) != "2" {
		t.Fatalf("a refused write changed the value to %q", kv.Value)
	}
}

// several: a write makes all its changes at one revision, and a watcher gets them in one batch; the error names a
// guard that does not hold, and nothing is written.
func several(t *testing.T, s store.Store) {
	c := ctx(t)
	r1 := must[int64](t)(s.Write(c, store.Create("/a/old", []byte("1")), store.Create("/claims/1", nil)))
	for _, key := range []string{"/a/old", "/claims/1"} {
		if kv := must[store.KV](t)(s.Get(c, key)); kv.Modified != r1 || kv.Created != r1 {
			t.Fatalf("%s is at %d, created at %d; want %d", key, kv.Modified, kv.Created, r1)
		}
	}
	all := must[store.Watch](t)(s.Watch(c, "", r1))
	defer all.Stop()
	for want, changes := range map[string][]store.Change{
		"/a/old already exists":                 {store.Create("/a/new", nil), store.Create("/a/old", nil), store.Drop("/claims/1")},
		"/a/missing not found":                  {store.Unchanged("/a/old", r1), store.Unchanged("/a/missing", r1), store.Create("/a/new", nil)},
		"/a/old changed since it was read":      {store.Create("/a/new", nil), store.Delete("/a/old", r1-1), store.Create("/claims/1", nil)},
		"/claims/1 already exists":              {store.Update("/a/old", nil, r1), store.Create("/claims/1", nil)},
		"/a/old changed since it was read 2":    {store.Unchanged("/a/old", r1-1), store.Update("/a/old", nil, r1)},
		"/claims/1 changed since it was read 2": {store.Drop("/a/old"), store.Unchanged("/claims/1", r1-1)},
	} {
		_, err := s.Write(c, changes...)
		var refused *store.Refused
		if !errors.As(err, &refused) || !strings.HasPrefix(want, refused.Key+" "+refused.Err.Error()) {
			t.Fatalf("refused with %v, want %s", err, want)
		}
	}
	if now := must[int64](t)(s.Revision(c)); now != r1 {
		t.Fatalf("refused writes went from revision %d to %d", r1, now)
	}
	r2 := must[int64](t)(s.Write(c, store.Unchanged("/claims/1", r1), store.Update("/a/old", []byte("2"), r1),
		store.Create("/a/new", []byte("n")), store.Drop("/a/never"), store.Create("/elsewhere", nil)))
	r3 := must[int64](t)(s.Write(c, store.Unchanged("/a/old", r2), store.Delete("/a/old", r2), store.Drop("/claims/1"), store.Update("/a/new", nil, r2)))
	got := map[int64][]string{}
	for len(got[r3]) == 0 {
		b, ok := <-all.Batches()
		if !ok {
			t.Fatal(all.Err())
		}
		for _, e := range b.Events {
			got[e.KV.Modified] = append(got[e.KV.Modified], fmt.Sprint(e.KV.Key, " ", e.Type == store.Deletion))
		}
		if n := len(got[b.Revision]); n != 3 {
			t.Fatalf("a batch ends with %d of the 3 changes of revision %d: %q", n, b.Revision, got[b.Revision])
		}
	}
	slices.Sort(got[r2])
	slices.Sort(got[r3])
	want := map[int64][]string{r2: {"/a/new false", "/a/old false", "/elsewhere false"}, r3: {"/a/new false", "/a/old true", "/claims/1 true"}}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("the watch told %v, want %v", got, want)
	}
	h := must[store.Watch](t)(s.History(c, "/a/", r1))
	defer h.Stop()
	n := 0
	for b := range h.Batches() {
		for _, e := range b.Events {
			n++
			if before := e.Prev != nil; before != (e.KV.Key == "/a/old" || e.KV.Modified == r3) {
				t.Errorf("history of %s at %d: there was something before: %v", e.KV.Key, e.KV.Modified, before)
			}
		}
	}
	if n != 4 {
		t.Errorf("history has %d changes, want 4", n)
	}
}

// exclusive: two keys, either of which may be there but not both, written by many at once.
func exclusive(t *testing.T, s store.Store) {
	c := ctx(t)
	var wg sync.WaitGroup
	var won atomic.Int32
	for i := range 20 {
		wg.Go(func() {
			switch _, err := s.Write(c, store.Create(fmt.Sprint("/a/", i), nil), store.Create("/claims/one", nil)); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, store.ErrExists):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if page := must[store.Page](t)(s.List(c, "/a/", "", 0, 0)); won.Load() != 1 || len(page.KVs) != 1 {
		t.Fatalf("%d writers won, %d keys are there", won.Load(), len(page.KVs))
	}
}

func race(t *testing.T, s store.Store) {
	c := ctx(t)
	r := must[int64](t)(s.Write(c, store.Create("/a/x", nil)))
	var wg sync.WaitGroup
	won := make(chan int64, 20)
	for i := range 20 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if rev, err := s.Write(c, store.Update("/a/x", []byte{byte(i)}, r)); err == nil {
				won <- rev
			} else if !errors.Is(err, store.ErrConflict) {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	if len(won) != 1 {
		t.Fatalf("%d writers won", len(won))
	}
}

func pages(t *testing.T, s store.Store) {
	c := ctx(t)
	must[int64](t)(s.Write(c, store.Create("/b/other", nil)))
	for i := range 10 {
		must[int64](t)(s.Write(c, store.Create(fmt.Sprintf("/a/%02d", i), nil)))
	}
	first := must[store.Page](t)(s.List(c, "/a/", "", 4, 0))
	if len(first.KVs) != 4 || !first.More || first.Count != 10 {
		t.Fatalf("first page: %d keys, more %v, count %d", len(first.KVs), first.More, first.Count)
	}
	must[int64](t)(s.Write(c, store.Create("/a/045", nil))) // after the first page was read
	seen := first.KVs
	for page := first; page.More; {
		page = must[store.Page](t)(s.List(c, "/a/", page.KVs[len(page.KVs)-1].Key, 4, first.Revision))
		if page.Revision != first.Revision {
			t.Fatalf("page at revision %d, first at %d", page.Revision, first.Revision)
		}
		seen = append(seen, page.KVs...)
	}
	for i, kv := range seen {
		if want := fmt.Sprintf("/a/%02d", i); kv.Key != want {
			t.Fatalf("key %d is %s, want %s", i, kv.Key, want)
		}
	}
	if len(seen) != 10 {
		t.Fatalf("saw %d keys", len(seen))
	}
	if all := must[store.Page](t)(s.List(c, "/a/", "", 0, 0)); len(all.KVs) != 11 || all.More {
		t.Fatalf("all: %d keys, more %v", len(all.KVs), all.More)
	}
}

// next collects n events of a watch.
func next(t *testing.T, w store.Watch, n int) []store.Event {
	t.Helper()
	var got []store.Event
	deadline := time.After(20 * time.Second)
	for len(got) < n {
		select {
		case b, ok := <-w.Batches():
			if !ok {
				t.Fatalf("watch ended after %d of %d events: %v", len(got), n, w.Err())
			}
			got = append(got, b.Events...) // none, if it only tells how far the watch is
			if len(got) == 0 {
				continue
			}
			if last := got[len(got)-1].KV.Modified; b.Revision < last {
				t.Fatalf("batch at revision %d holds a change at %d", b.Revision, last)
			}
		case <-deadline:
			t.Fatalf("got %d of %d events in time", len(got), n)
		}
	}
	return got
}

func watchAll(t *testing.T, s store.Store) {
	c := ctx(t)
	must[int64](t)(s.Write(c, store.Create("/a/before", nil)))
	start := must[int64](t)(s.Revision(c))
	w := must[store.Watch](t)(s.Watch(c, "/a/", start))
	defer w.Stop()
	type change struct {
		key string
		rev int64
		del bool
	}
	var want []change
	rng := rand.New(rand.NewSource(1))
	live := map[string]int64{}
	for range 300 {
		key := fmt.Sprintf("/a/%d", rng.Intn(8))
		rev, exists := live[key]
		switch {
		case !exists:
			live[key] = must[int64](t)(s.Write(c, store.Create(key, []byte(key))))
			want = append(want, change{key, live[key], false})
		case rng.Intn(3) == 0:
			want = append(want, change{key, must[int64](t)(s.Write(c, store.Delete(key, rev))), true})
			delete(live, key)
		default:
			live[key] = must[int64](t)(s.Write(c, store.Update(key, []byte(key), rev)))
			want = append(want, change{key, live[key], false})
		}
		if rng.Intn(4) == 0 { // not ours
			must[int64](t)(s.Write(c, store.Create(fmt.Sprintf("/b/%d", rng.Int63()), nil)))
		}
	}
	for i, e := range next(t, w, len(want)) {
		if got := (change{e.KV.Key, e.KV.Modified, e.Type == store.Deletion}); got != want[i] {
			t.Fatalf("event %d is %+v, want %+v", i, got, want[i])
		}
	}
}

// history: from any revision that is kept, all that has happened since, with what was there before each change.
func history(t *testing.T, s store.Store) {
	c := ctx(t)
	rng := rand.New(rand.NewSource(2))
	type state struct {
		rev   int64
		value string
	}
	live := map[string]state{}
	type step struct {
		key, value, prev string
		rev              int64
	}
	var steps []step
	for i := range 200 {
		key, value := fmt.Sprintf("/a/%d", rng.Intn(5)), fmt.Sprint(i)
		old, exists := live[key]
		switch {
		case !exists:
			live[key] = state{must[int64](t)(s.Write(c, store.Create(key, []byte(value)))), value}
			steps = append(steps, step{key, value, "", live[key].rev})
		case rng.Intn(3) == 0:
			steps = append(steps, step{key, "", old.value, must[int64](t)(s.Write(c, store.Delete(key, old.rev)))})
			delete(live, key)
		default:
			live[key] = state{must[int64](t)(s.Write(c, store.Update(key, []byte(value), old.rev))), value}
			steps = append(steps, step{key, value, old.value, live[key].rev})
		}
		if rng.Intn(3) == 0 { // not ours
			must[int64](t)(s.Write(c, store.Create(fmt.Sprintf("/b/%d", rng.Int63()), nil)))
		}
	}
	read := func(after int64) (got []step) {
		t.Helper()
		now := must[int64](t)(s.Revision(c))
		w := must[store.Watch](t)(s.History(c, "/a/", after))
		defer w.Stop()
		last := int64(0)
		for b := range w.Batches() {
			for _, e := range b.Events {
				st := step{key: e.KV.Key, rev: e.KV.Modified}
				if e.Type == store.Put {
					st.value = string(e.KV.Value)
				}
				if e.Prev != nil {
					st.prev = string(e.Prev.Value)
				}
				got = append(got, st)
			}
			last = b.Revision
		}
		if w.Err() != nil || last < now {
			t.Fatalf("history ended at %d of %d: %v", last, now, w.Err())
		}
		return got
	}
	check := func(from int) {
		t.Helper()
		got := read(steps[from].rev)
		if len(got) != len(steps)-from-1 {
			t.Fatalf("after step %d: %d steps, want %d", from, len(got), len(steps)-from-1)
		}
		for i, g := range got {
			if g != steps[from+1+i] {
				t.Fatalf("after step %d: %+v, want %+v", from, g, steps[from+1+i])
			}
		}
	}
	last := must[int64](t)(s.Write(c, store.Create("/a/last", []byte("last")))) // the newest revision there is
	steps = append(steps, step{"/a/last", "last", "", last})
	for _, from := range []int{0, 57, 150, len(steps) - 2, len(steps) - 1} {
		check(from)
	}
	if err := s.Compact(c, steps[100].rev); err != nil {
		t.Fatal(err)
	}
	if got := s.Compacted(); got != steps[100].rev {
		t.Fatalf("compacted at %d, said to be at %d", steps[100].rev, got)
	}
	check(100)
	check(130)
	if w, err := s.History(c, "/a/", steps[99].rev); err == nil {
		w.Stop()
		t.Fatal("there is history from before the compaction")
	} else if !errors.Is(err, store.ErrCompacted) {
		t.Fatal(err)
	}
}

func watchResume(t *testing.T, s store.Store) {
	c := ctx(t)
	r1 := must[int64](t)(s.Write(c, store.Create("/a/x", []byte("1"))))
	r2 := must[int64](t)(s.Write(c, store.Update("/a/x", []byte("2"), r1)))
	r3 := must[int64](t)(s.Write(c, store.Update("/a/x", []byte("3"), r2)))
	w := must[store.Watch](t)(s.Watch(c, "/a/", r1))
	got := next(t, w, 2)
	w.Stop()
	if got[0].KV.Modified != r2 || got[1].KV.Modified != r3 {
		t.Fatalf("resumed with %+v", got)
	}
	if err := s.Compact(c, r3); err != nil {
		t.Fatal(err)
	}
	w = must[store.Watch](t)(s.Watch(c, "/a/", r1-1))
	defer w.Stop()
	for range w.Batches() {
		t.Fatal("a watch from compacted history delivered something")
	}
	if !errors.Is(w.Err(), store.ErrCompacted) {
		t.Fatalf("ended with %v", w.Err())
	}
	wantErr(t, store.ErrCompacted)(s.List(c, "/a/", "", 0, r1))
	if kv := must[store.KV](t)(s.Get(c, "/a/x")); string(kv.Value) != "3" {
		t.Fatalf("compaction lost the last state: %+v", kv)
	}
}

func revision(t *testing.T, s store.Store) {
	c := ctx(t)
	for i := range 50 {
		rev := must[int64](t)(s.Write(c, store.Create(fmt.Sprintf("/a/%d", i), nil)))
		if now := must[int64](t)(s.Revision(c)); now < rev {
			t.Fatalf("revision %d after a write at %d", now, rev)
		}
	}
}
