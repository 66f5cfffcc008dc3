// Package storetest is the contract of store.Store, as tests that every implementation runs.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"sync"
	"testing"
	"time"

	"minik8s/internal/store"
)

// Run checks the store that open makes; each test gets a new, empty one.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	for name, test := range map[string]func(*testing.T, store.Store){
		"create, get, update, delete":            crud,
		"a stale write is refused":               stale,
		"one of many writers wins":               race,
		"list pages at one revision":             pages,
		"watch misses nothing, repeats nothing":  watchAll,
		"watch resumes, and ends when compacted": watchResume,
		"history tells all, and what was before": history,
		"revision covers acknowledged writes":    revision,
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
	r1 := must[int64](t)(s.Create(c, "/a/x", []byte("1")))
	wantErr(t, store.ErrExists)(s.Create(c, "/a/x", []byte("2")))
	r2 := must[int64](t)(s.Update(c, "/a/x", []byte("2"), r1))
	kv := must[store.KV](t)(s.Get(c, "/a/x"))
	if string(kv.Value) != "2" || kv.Created != r1 || kv.Modified != r2 || r2 <= r1 {
		t.Fatalf("got %+v after revisions %d and %d", kv, r1, r2)
	}
	must[int64](t)(s.Delete(c, "/a/x", r2))
	wantErr(t, store.ErrNotFound)(s.Get(c, "/a/x"))
	wantErr(t, store.ErrNotFound)(s.Delete(c, "/a/x", r2))
	wantErr(t, store.ErrNotFound)(s.Update(c, "/a/x", nil, r2))
	must[int64](t)(s.Create(c, "/a/x", []byte("again")))
}

func stale(t *testing.T, s store.Store) {
	c := ctx(t)
	r1 := must[int64](t)(s.Create(c, "/a/x", []byte("1")))
	must[int64](t)(s.Update(c, "/a/x", []byte("2"), r1))
	wantErr(t, store.ErrConflict)(s.Update(c, "/a/x", []byte("3"), r1))
	wantErr(t, store.ErrConflict)(s.Delete(c, "/a/x", r1))
	if kv := must[store.KV](t)(s.Get(c, "/a/x")); string(kv.Value) != "2" {
		t.Fatalf("a refused write changed the value to %q", kv.Value)
	}
}

func race(t *testing.T, s store.Store) {
	c := ctx(t)
	r := must[int64](t)(s.Create(c, "/a/x", nil))
	var wg sync.WaitGroup
	won := make(chan int64, 20)
	for i := range 20 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if rev, err := s.Update(c, "/a/x", []byte{byte(i)}, r); err == nil {
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
	must[int64](t)(s.Create(c, "/b/other", nil))
	for i := range 10 {
		must[int64](t)(s.Create(c, fmt.Sprintf("/a/%02d", i), nil))
	}
	first := must[store.Page](t)(s.List(c, "/a/", "", 4, 0))
	if len(first.KVs) != 4 || !first.More || first.Count != 10 {
		t.Fatalf("first page: %d keys, more %v, count %d", len(first.KVs), first.More, first.Count)
	}
	must[int64](t)(s.Create(c, "/a/045", nil)) // after the first page was read
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
			got = append(got, b.Events...)
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
	must[int64](t)(s.Create(c, "/a/before", nil))
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
			live[key] = must[int64](t)(s.Create(c, key, []byte(key)))
			want = append(want, change{key, live[key], false})
		case rng.Intn(3) == 0:
			want = append(want, change{key, must[int64](t)(s.Delete(c, key, rev)), true})
			delete(live, key)
		default:
			live[key] = must[int64](t)(s.Update(c, key, []byte(key), rev))
			want = append(want, change{key, live[key], false})
		}
		if rng.Intn(4) == 0 { // not ours
			must[int64](t)(s.Create(c, fmt.Sprintf("/b/%d", rng.Int63()), nil))
		}
	}
	for i, e := range next(t, w, len(want)) {
		if got := (change{e.KV.Key, e.KV.Modified, e.Type == store.Delete}); got != want[i] {
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
			live[key] = state{must[int64](t)(s.Create(c, key, []byte(value))), value}
			steps = append(steps, step{key, value, "", live[key].rev})
		case rng.Intn(3) == 0:
			steps = append(steps, step{key, "", old.value, must[int64](t)(s.Delete(c, key, old.rev))})
			delete(live, key)
		default:
			live[key] = state{must[int64](t)(s.Update(c, key, []byte(value), old.rev)), value}
			steps = append(steps, step{key, value, old.value, live[key].rev})
		}
		if rng.Intn(3) == 0 { // not ours
			must[int64](t)(s.Create(c, fmt.Sprintf("/b/%d", rng.Int63()), nil))
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
	last := must[int64](t)(s.Create(c, "/a/last", []byte("last"))) // the newest revision there is
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
	r1 := must[int64](t)(s.Create(c, "/a/x", []byte("1")))
	r2 := must[int64](t)(s.Update(c, "/a/x", []byte("2"), r1))
	r3 := must[int64](t)(s.Update(c, "/a/x", []byte("3"), r2))
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
		rev := must[int64](t)(s.Create(c, fmt.Sprintf("/a/%d", i), nil))
		if now := must[int64](t)(s.Revision(c)); now < rev {
			t.Fatalf("revision %d after a write at %d", now, rev)
		}
	}
}
