package storage_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/local"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
	"minik8s/internal/registry/storage"
	"minik8s/internal/store/memory"
)

// follow reads events until the object of that name and data is seen, and gives what the watcher then knows:
// name=data in order.
func follow(t *testing.T, w *registry.Watch, known map[string]string, last string) {
	t.Helper()
	for {
		events, err := w.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			cm, _ := e.Entry.Object().(*corev1.ConfigMap)
			_, had := known[cm.Name]
			switch {
			case e.Type == api.Added && !had, e.Type == api.Modified && had:
				known[cm.Name] = cm.Data["v"]
			case e.Type == api.Deleted && had:
				delete(known, cm.Name)
			default:
				t.Fatalf("%s of %s, which was there: %v", e.Type, cm.Name, had)
			}
			if cm.Name == last && e.Type != api.Deleted {
				return
			}
		}
	}
}

// TestWatchReadsOnFromHistory: a watcher from before a restart, or one that a burst has left behind the log, misses
// nothing and repeats nothing, with a selector too; only when the store has dropped the history it must list again.
func TestWatchReadsOnFromHistory(t *testing.T) {
	kept := memory.New()
	reg, stop := registrytest.Start(t, kept)
	c := local.New(reg, registry.System)
	rnd := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same each time
	put := func(name, value, label string) {
		t.Helper()
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"l": label}}, Data: map[string]string{"v": value}}
		if _, err := c.Create(t.Context(), cm, client.WriteOptions{}); apierrors.IsAlreadyExists(err) {
			if _, err := c.Update(t.Context(), cm, client.WriteOptions{}); err != nil {
				t.Fatal(err)
			}
		} else if err != nil {
			t.Fatal(err)
		}
	}
	churn := func(n int) {
		t.Helper()
		for i := range n {
			name := fmt.Sprintf("m%d", rnd.IntN(9))
			if rnd.IntN(4) == 0 {
				err := func() error {
					_, err := c.Delete(t.Context(), client.Key{Kind: api.ConfigMaps, Namespace: "default", Name: name}, nil)
					return err
				}()
				if err != nil && !apierrors.IsNotFound(err) {
					t.Fatal(err)
				}
				continue
			}
			put(name, fmt.Sprint(i), fmt.Sprint(rnd.IntN(2)))
		}
	}
	// now is what a list shows, with its revision.
	now := func(sel labels.Selector) (map[string]string, int64) {
		t.Helper()
		l, err := reg.List(t.Context(), registrytest.Ask("list", api.ConfigMaps, "default", "", ""), registry.ListOptions{Labels: sel})
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		for _, e := range l.Entries {
			cm := e.Object().(*corev1.ConfigMap)
			out[cm.Name] = cm.Data["v"]
		}
		return out, l.Revision
	}
	watch := func(from int64, sel labels.Selector) (*registry.Watch, error) {
		return reg.Watch(t.Context(), registrytest.Ask("watch", api.ConfigMaps, "default", "", ""), registry.WatchOptions{Revision: from, Labels: sel})
	}
	selectors := []labels.Selector{nil, labels.SelectorFromSet(labels.Set{"l": "1"})}
	same := func(when string, known map[string]string, sel labels.Selector) {
		t.Helper()
		want, _ := now(sel)
		if fmt.Sprint(known) != fmt.Sprint(want) {
			t.Errorf("%s: the watcher knows %v, there is %v", when, known, want)
		}
	}
	churn(50)
	for i, sel := range selectors {
		known, from := now(sel)
		// A burst while the watcher does not read: more bytes than the log holds.
		w, err := watch(from, sel)
		if err != nil {
			t.Fatal(err)
		}
		churn(200)
		for range 24 {
			put("big", strings.Repeat("x", 500_000), "0")
		}
		if _, err := c.Delete(t.Context(), client.Key{Kind: api.ConfigMaps, Namespace: "default", Name: "big"}, nil); err != nil {
			t.Fatal(err)
		}
		put("last", fmt.Sprint(i), "1")
		follow(t, w, known, "last")
		same("after a burst", known, sel)
		churn(20)
		put("last2", fmt.Sprint(i), "1")
		follow(t, w, known, "last2")
		same("after it has caught up", known, sel)
		for _, name := range []string{"last", "last2"} {
			if _, err := c.Delete(t.Context(), client.Key{Kind: api.ConfigMaps, Namespace: "default", Name: name}, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	known, from := now(nil)
	churn(100)
	stop()
	reg, stop = registrytest.Start(t, kept)
	t.Cleanup(stop)
	c = local.New(reg, registry.System)
	churn(10)
	w, err := watch(from, nil)
	if err != nil {
		t.Fatal(err)
	}
	put("last", "3", "1")
	follow(t, w, known, "last")
	same("after a restart", known, nil)
	if err := kept.Compact(context.Background(), reg.Revision()); err != nil {
		t.Fatal(err)
	}
	if _, err := watch(from, nil); !apierrors.IsResourceExpired(err) {
		t.Errorf("after a compaction: %v", err)
	}
}

// TestPagesOfAList: the pages of a chunked list are one list at one revision, however much is written between
// them, and a token that has expired gives one to go on with.
func TestPagesOfAList(t *testing.T) {
	kept := memory.New()
	reg, stop := registrytest.Start(t, kept)
	t.Cleanup(stop)
	c := local.New(reg, registry.System)
	const n = 600
	for i := range n {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("m%03d", i), Labels: map[string]string{"third": fmt.Sprint(i % 3)}}}
		if _, err := c.Create(t.Context(), cm, client.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	third := labels.SelectorFromSet(labels.Set{"third": "1"})
	for _, x := range []struct {
		name  string
		sel   labels.Selector
		write bool
		limit int64
		want  int
	}{
		{"quiet", nil, false, 70, n}, {"busy", nil, true, 70, n}, {"one page", nil, false, 1000, n}, {"to the last", nil, false, 200, n},
		{"selected", third, false, 70, n / 3}, {"selected, busy", third, true, 30, n / 3},
	} {
		var got []string
		opts := registry.ListOptions{Limit: x.limit, Labels: x.sel}
		rev := int64(0)
		for {
			l, err := reg.List(t.Context(), registrytest.Ask("list", api.ConfigMaps, "default", "", ""), opts)
			if err != nil {
				t.Fatal(x.name, err)
			}
			for _, e := range l.Entries {
				got = append(got, e.Object().GetName())
			}
			if rev != 0 && l.Revision != rev {
				t.Errorf("%s: a page of revision %d, the first was of %d", x.name, l.Revision, rev)
			}
			if rev = l.Revision; x.sel == nil && l.Continue != "" && (l.Remaining == nil || *l.Remaining != int64(n-len(got))) {
				t.Errorf("%s: after %d remain %v", x.name, len(got), l.Remaining)
			}
			if opts.Continue = l.Continue; l.Continue == "" {
				break
			}
			if x.write {
				name := fmt.Sprintf("m%03d-%d", len(got), rev) // right behind what was read
				cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"third": "1"}}}
				if _, err := c.Create(t.Context(), cm, client.WriteOptions{}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if x.write {
			all, err := c.List(t.Context(), api.ConfigMaps, client.ListOptions{Namespace: "default"})
			if err != nil {
				t.Fatal(err)
			}
			for _, obj := range all.Items {
				if strings.Contains(obj.GetName(), "-") {
					if _, err := c.Delete(t.Context(), client.KeyOf(obj), nil); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		if len(got) != x.want {
			t.Errorf("%s: %d objects, want %d", x.name, len(got), x.want)
		}
	}
	ask := func(o registry.ListOptions) (*registry.List, error) {
		return reg.List(t.Context(), registrytest.Ask("list", api.ConfigMaps, "default", "", ""), o)
	}
	first, err := ask(registry.ListOptions{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Delete(t.Context(), client.Key{Kind: api.ConfigMaps, Namespace: "default", Name: "m300"}, nil); err != nil {
		t.Fatal(err)
	}
	now, err := ask(registry.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := kept.Compact(t.Context(), now.Revision); err != nil {
		t.Fatal(err)
	}
	_, err = ask(registry.ListOptions{Limit: 100, Continue: first.Continue})
	status, ok := err.(apierrors.APIStatus) //nolint:errorlint // it is made by List itself
	if !ok || !apierrors.IsResourceExpired(err) || status.Status().Continue == "" {
		t.Fatal(err)
	}
	rest, err := ask(registry.ListOptions{Continue: status.Status().Continue})
	if err != nil || len(rest.Entries) != n-100-1 || rest.Entries[0].Object().GetName() != "m100" {
		t.Errorf("%v: %d objects", err, len(rest.Entries))
	}
	for _, o := range []registry.ListOptions{
		{Match: "Foo", ResourceVersion: "1"}, {Match: metav1.ResourceVersionMatchExact}, {Match: metav1.ResourceVersionMatchExact, ResourceVersion: "0"},
		{Continue: rest.Continue + first.Continue, ResourceVersion: "7"}, {Continue: first.Continue, Match: metav1.ResourceVersionMatchNotOlderThan},
		{Continue: "eyJydiI6OTk5OTk5OTksImFmdGVyIjoiYSJ9"}, // of the future
	} {
		if _, err := ask(o); !apierrors.IsBadRequest(err) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	// A revision that is not there yet.
	if _, err := ask(registry.ListOptions{ResourceVersion: "99999", Match: metav1.ResourceVersionMatchExact}); !apierrors.IsTimeout(err) {
		t.Errorf("the future: %v", err)
	}
}

// TestBookmarksOfASelectiveWatch: a watcher whose selector shows it nothing of what happens all the time still
// learns how far it need not read again.
func TestBookmarksOfASelectiveWatch(t *testing.T) {
	kept := memory.New()
	reg, stop := registrytest.Start(t, kept)
	t.Cleanup(stop)
	c := local.New(reg, registry.System)
	cache := storage.New(kept, api.Kinds, 10*time.Millisecond)
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		cache.Run(ctx, slog.New(slog.DiscardHandler), func() { close(ready) }) //nolint:errcheck // it ends with ctx
	}()
	t.Cleanup(func() { cancel(); <-ended })
	<-ready
	w, err := cache.Watch(t.Context(), api.ConfigMaps, storage.WatchOptions{Bookmarks: true},
		&storage.Selector{Namespace: "default", Labels: labels.SelectorFromSet(labels.Set{"no": "such"})})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	writing := make(chan struct{})
	go func() {
		defer close(writing)
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			if _, err := c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("m", i)}}, client.WriteOptions{}); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	defer func() { close(done); <-writing }()
	last := int64(0)
	for range 3 {
		events, err := w.Next(t.Context())
		if err != nil || len(events) != 1 || events[0].Type != api.Bookmark || events[0].Revision <= last {
			t.Fatalf("%+v, %v", events, err)
		}
		last = events[0].Revision
	}
}
