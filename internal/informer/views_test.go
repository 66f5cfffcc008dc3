package informer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/faulty"
	"minik8s/internal/client/local"
	"minik8s/internal/informer"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
	"minik8s/internal/supervise"
)

var quiet = slog.New(slog.DiscardHandler)

// watches counts the watches that are open and those that were opened. gate, if not nil, holds every watch back.
type watches struct {
	client.Interface
	open, opened atomic.Int32
	gate         chan struct{}
}

type counted struct {
	client.Watcher
	once sync.Once
	of   *watches
}

func (w *watches) Watch(ctx context.Context, kind *api.Kind, opts client.WatchOptions) (client.Watcher, error) {
	if w.gate != nil {
		select {
		case <-w.gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	inner, err := w.Interface.Watch(ctx, kind, opts)
	if err != nil {
		return nil, err
	}
	w.open.Add(1)
	w.opened.Add(1)
	return &counted{Watcher: inner, of: w}, nil
}

func (c *counted) Stop() {
	c.once.Do(func() { c.of.open.Add(-1) })
	c.Watcher.Stop()
}

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"v": value}}
}

func create(t *testing.T, c client.Interface, obj api.Object) {
	t.Helper()
	if _, err := c.Create(t.Context(), obj, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// start runs an informer until stop is called or the test ends; stop returns its error. ready is closed when it is
// ready.
func start[T api.Object](t *testing.T, inf *informer.Informer[T]) (ready chan struct{}, stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- inf.Run(ctx, func() { close(ready) }) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { stop() }) //nolint:errcheck // the test has looked at it, if it wanted to
	return ready, stop
}

func await(t *testing.T, what string, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(time.Minute):
		t.Fatal(what + ": it did not come to that")
	}
}

// Informers of the same kind and selection share a watch, which ends with the last of them.
func TestOneWatchForAll(t *testing.T) {
	c := local.New(registrytest.New(t), registry.System)
	create(t, c, configMap("a", "1"))
	w := &watches{Interface: c}
	views := informer.NewViews(w, quiet)
	var stops []func() error
	for range 5 {
		inf := informer.New[*corev1.ConfigMap](c, api.ConfigMaps, informer.Options{Views: views})
		ready, stop := start(t, inf)
		await(t, "ready", ready)
		if _, ok := inf.Get("default", "a"); !ok || inf.Len() != 1 || len(inf.List()) != 1 || inf.Revision() == 0 {
			t.Error("it does not show what exists")
		}
		stops = append(stops, stop)
	}
	if w.open.Load() != 1 || w.opened.Load() != 1 {
		t.Errorf("%d watches, %d were opened", w.open.Load(), w.opened.Load())
	}
	// Another selection is another view.
	named := informer.New[*corev1.ConfigMap](c, api.ConfigMaps,
		informer.Options{Views: views, Fields: fields.OneTermEqualSelector("metadata.name", "b")})
	ready, stop := start(t, named)
	await(t, "ready", ready)
	if named.Len() != 0 || w.open.Load() != 2 {
		t.Errorf("it shows %d objects, there are %d watches", named.Len(), w.open.Load())
	}
	for _, stop := range append(stops, stop) {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}
	if w.open.Load() != 0 {
		t.Errorf("%d watches are left", w.open.Load())
	}
	again, _ := start(t, informer.New[*corev1.ConfigMap](c, api.ConfigMaps, informer.Options{Views: views}))
	await(t, "ready again", again)
}

// An informer that joins a view which is behind is not ready before the view shows what was written and deleted before.
func TestShowsWhatWasWrittenBefore(t *testing.T) {
	for what, do := range map[string]func(c client.Interface) error{
		"created": func(c client.Interface) error {
			_, err := c.Create(t.Context(), configMap("other", "1"), client.WriteOptions{})
			return err
		},
		"changed": func(c client.Interface) error {
			_, err := c.Update(t.Context(), configMap("a", "2"), client.WriteOptions{})
			return err
		},
		"deleted": func(c client.Interface) error {
			_, err := c.Delete(t.Context(), client.KeyOf(configMap("a", "")), nil)
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			c := local.New(registrytest.New(t), registry.System)
			create(t, c, configMap("a", "1"))
			create(t, c, configMap("z", "1")) // the newest is another
			slow := &slowWatch{Interface: c, gate: make(chan struct{}, 10)}
			views := informer.NewViews(slow, quiet)
			first := informer.New[*corev1.ConfigMap](c, api.ConfigMaps, informer.Options{Views: views})
			ready, _ := start(t, first)
			await(t, "the first is ready", ready)
			if err := do(c); err != nil {
				t.Fatal(err)
			}
			second := informer.New[*corev1.ConfigMap](c, api.ConfigMaps, informer.Options{Views: views})
			ready, _ = start(t, second)
			agrees := func() {
				t.Helper()
				list, _, err := client.All[*corev1.ConfigMap](t.Context(), c, api.ConfigMaps, client.ListOptions{})
				if err != nil || len(list) != second.Len() {
					t.Fatalf("%d objects of %d are shown: %v", second.Len(), len(list), err)
				}
				for _, cm := range list {
					if shown, ok := second.Get(cm.Namespace, cm.Name); !ok || shown.ResourceVersion != cm.ResourceVersion {
						t.Fatalf("%s: shown is %v", cm.Name, shown)
					}
				}
			}
			select {
			case <-ready:
				agrees()
			case <-time.After(50 * time.Millisecond): // it waits: that is what we want to see
			}
			slow.gate <- struct{}{}
			await(t, "the second is ready", ready)
			agrees()
		})
	}
}

// After Run, an informer shows what it showed last: its indexes hear of nothing new either.
func TestStandsStillAfterwards(t *testing.T) {
	c := local.New(registrytest.New(t), registry.System)
	views := informer.NewViews(c, quiet)
	stopped := informer.New[*corev1.ConfigMap](c, api.ConfigMaps, informer.Options{Views: views})
	goesOn := informer.New[*corev1.ConfigMap](c, api.ConfigMaps, informer.Options{Views: views})
	shown := make(chan struct{})
	goesOn.OnChange(func(_, now *corev1.ConfigMap) {
		if now.Name == "b" {
			close(shown)
		}
	})
	create(t, c, configMap("a", "1"))
	ready, stop := start(t, stopped)
	await(t, "ready", ready)
	ready, _ = start(t, goesOn)
	await(t, "ready", ready)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	at := stopped.Revision()
	create(t, c, configMap("b", "1"))
	await(t, "the other shows it", shown)
	if _, ok := stopped.Get("default", "b"); ok || stopped.Len() != 1 || stopped.Revision() != at {
		t.Errorf("it shows %d objects at %d, before it was %d", stopped.Len(), stopped.Revision(), at)
	}
}

// slowWatch sends each change after the initial objects only when gate has been sent to.
type slowWatch struct {
	client.Interface
	gate chan struct{}
}

type slowWatcher struct {
	client.Watcher
	events chan client.Event
}

func (w *slowWatcher) Events() <-chan client.Event { return w.events }

func (s *slowWatch) Watch(ctx context.Context, kind *api.Kind, opts client.WatchOptions) (client.Watcher, error) {
	inner, err := s.Interface.Watch(ctx, kind, opts)
	if err != nil {
		return nil, err
	}
	w := &slowWatcher{Watcher: inner, events: make(chan client.Event)}
	go func() {
		defer close(w.events)
		initial := opts.ResourceVersion == ""
		for e := range inner.Events() {
			if !initial {
				select {
				case <-s.gate:
				case <-ctx.Done():
					return
				}
			}
			initial = initial && !e.InitialEnd
			select {
			case w.events <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	return w, nil
}

// A handler or an index that panics ends its own informer, also while it joins, and no other.
func TestPanicEndsOnlyItsOwn(t *testing.T) {
	c := local.New(registrytest.New(t), registry.System)
	views := informer.NewViews(c, quiet)
	panics := func(_, now *corev1.ConfigMap) {
		if now.Name == "bad" {
			panic("bad")
		}
	}
	good := informer.New[*corev1.ConfigMap](c, api.ConfigMaps, informer.Options{Views: views})
	shown := make(chan struct{})
	good.OnChange(func(_, now *corev1.ConfigMap) {
		if now.Name == "last" {
			close(shown)
		}
	})
	ready, stopGood := start(t, good)
	await(t, "ready", ready)
	failed := make(chan error, 4)
	join := func(add func(*informer.Informer[*corev1.ConfigMap])) (ready chan struct{}) {
		inf := informer.New[*corev1.ConfigMap](c, api.ConfigMaps, informer.Options{Views: views})
		add(inf)
		ready = make(chan struct{})
		go func() { failed <- inf.Run(t.Context(), func() { close(ready) }) }()
		return ready
	}
	change := func(inf *informer.Informer[*corev1.ConfigMap]) { inf.OnChange(panics) }
	index := func(inf *informer.Informer[*corev1.ConfigMap]) { inf.Index(panics) }
	await(t, "ready", join(change))
	await(t, "ready", join(index))
	create(t, c, configMap("bad", "1"))
	join(change)
	join(index)
	for range 4 {
		var p *supervise.Panic
		if err := <-failed; !errors.As(err, &p) || p.Value != "bad" {
			t.Errorf("an informer ended with %v", err)
		}
	}
	create(t, c, configMap("last", "1"))
	await(t, "the good one sees the change after that", shown)
	if err := stopGood(); err != nil || good.Len() != 2 {
		t.Errorf("the good one: %v, it shows %d", err, good.Len())
	}
}

// The views may read everything. A part sees only what its own client may list.
func TestJoinsWithItsOwnRights(t *testing.T) {
	reg := registrytest.New(t)
	create(t, local.New(reg, registry.System), configMap("a", "1"))
	views := informer.NewViews(local.New(reg, registry.Part("views")), quiet)
	may, _ := start(t, informer.New[*corev1.ConfigMap](local.New(reg, registry.Part("serviceaccount-controller")), api.ConfigMaps,
		informer.Options{Views: views}))
	await(t, "ready", may)
	refused := make(chan struct{}, 100)
	mayNot := informer.New[*corev1.ConfigMap](&listing{local.New(reg, registry.Part("scheduler")), refused}, api.ConfigMaps, informer.Options{Views: views})
	ready, stop := start(t, mayNot)
	await(t, "it has tried", refused)
	await(t, "it has tried again", refused)
	if err := stop(); err != nil || mayNot.Len() != 0 {
		t.Errorf("%v; it shows %d objects", err, mayNot.Len())
	}
	select {
	case <-ready:
		t.Error("it was ready")
	default:
	}
}

// listing tells when a list was refused.
type listing struct {
	client.Interface
	refused chan struct{}
}

func (l *listing) List(ctx context.Context, kind *api.Kind, opts client.ListOptions) (*client.List, error) {
	out, err := l.Interface.List(ctx, kind, opts)
	if err != nil {
		l.refused <- struct{}{}
	}
	return out, err
}

// Informers come and go while objects change and the watch breaks. Each sees a consistent history from its first
// moment to its last; its index always agrees with it; those that stay end up with exactly what is stored.
func TestComeAndGo(t *testing.T) {
	for seed := range int64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			good := local.New(registrytest.New(t), registry.System)
			bad := faulty.New(good, faulty.Rates{Drop: 0.2, Break: 0.1, Delay: 0.2, MaxDelay: time.Millisecond}, seed)
			views := informer.NewViews(bad, quiet)
			var wg sync.WaitGroup
			for n := range int64(4) {
				rng := rand.New(rand.NewSource(seed*10 + n))
				wg.Go(func() {
					for range 15 {
						h := newHistory(t, good, views)
						ready, stop := start(t, h.inf)
						if rng.Intn(3) > 0 {
							await(t, "ready", ready)
						}
						time.Sleep(time.Duration(rng.Intn(3)) * time.Millisecond) // so that they leave at any moment
						if err := stop(); err != nil {
							t.Error(err)
						}
						h.agrees()
					}
				})
			}
			stays := newHistory(t, good, views)
			start(t, stays.inf)
			mix(t, t.Context(), good, seed)
			wg.Wait()
			bad.Heal()
			final, _, err := client.All[*corev1.ConfigMap](t.Context(), good, api.ConfigMaps, client.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			deadline := time.After(time.Minute)
			for !stays.equals(final) {
				select {
				case <-stays.changed:
				case <-deadline:
					t.Fatalf("the informer has %v", stays.view)
				}
			}
			stays.agrees()
		})
	}
}

// history is an informer, and what its handlers were called with.
type history struct {
	t       *testing.T
	inf     *informer.Informer[*corev1.ConfigMap]
	changed chan struct{}

	mu          sync.Mutex
	view, index map[string]string // versions by name
}

func newHistory(t *testing.T, c client.Interface, views *informer.Views) *history {
	h := &history{t: t, changed: make(chan struct{}, 1), view: map[string]string{}, index: map[string]string{},
		inf: informer.New[*corev1.ConfigMap](c, api.ConfigMaps, informer.Options{Views: views})}
	h.inf.Index(func(old, now *corev1.ConfigMap) { h.see(h.index, old, now) })
	h.inf.OnChange(func(old, now *corev1.ConfigMap) {
		h.see(h.view, old, now)
		select {
		case h.changed <- struct{}{}:
		default:
		}
	})
	return h
}

func (h *history) see(of map[string]string, old, now *corev1.ConfigMap) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case old == nil && of[now.Name] != "":
		h.t.Errorf("%s was added twice", now.Name)
	case old != nil && now != nil && of[old.Name] != old.ResourceVersion:
		h.t.Errorf("%s changed from %s, seen was %s", old.Name, old.ResourceVersion, of[old.Name])
	case now == nil && of[old.Name] == "":
		h.t.Errorf("%s was deleted, but never seen", old.Name)
	}
	if now == nil {
		delete(of, old.Name)
		return
	}
	of[now.Name] = now.ResourceVersion
}

func (h *history) equals(list []*corev1.ConfigMap) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.view) != len(list) || h.inf.Len() != len(list) {
		return false
	}
	for _, cm := range list {
		if h.view[cm.Name] != cm.ResourceVersion {
			return false
		}
	}
	return true
}

// agrees checks that handlers and index were called with the same. Call it when no change can come.
func (h *history) agrees() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if fmt.Sprint(h.view) != fmt.Sprint(h.index) {
		h.t.Errorf("handlers have %v, the index %v", h.view, h.index)
	}
}
