package function

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/api"
	"minik8s/internal/api/defaults"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
	"minik8s/internal/client/local"
	"minik8s/internal/clock"
	"minik8s/internal/controller/loop"
	"minik8s/internal/informer"
	"minik8s/internal/registry"
	"minik8s/internal/registry/strategy"
	"minik8s/internal/store/memory"
)

// anAPI is an API over a store in memory, with the namespace default.
func anAPI(t *testing.T) (*registry.Registry, client.Interface) {
	t.Helper()
	reg := registry.New(memory.New(), strategy.All(strategy.Settings{}), slog.New(slog.DiscardHandler))
	ready := make(chan struct{})
	go reg.Run(t.Context(), func() { close(ready) }) //nolint:errcheck // it ends with the test
	<-ready
	if err := reg.Ensure(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}); err != nil {
		t.Fatal(err)
	}
	return reg, local.New(reg, registry.System)
}

// controlling is a controller with its informers, that has no instances and no images.
func controlling(t *testing.T, reg *registry.Registry) *Controller {
	t.Helper()
	c := local.New(reg, registry.Part(ControllerName))
	log := slog.New(slog.DiscardHandler)
	f := NewController(c, informer.NewViews(c, log), nil, nil, NewServer(c, Config{Master: "a", Log: log}), reg.Kinds(), 0, log)
	synced := make(chan struct{}, 2)
	for _, i := range []interface {
		Run(ctx context.Context, ready func()) error
	}{f.functions, f.calls} {
		go i.Run(t.Context(), func() { synced <- struct{}{} }) //nolint:errcheck // it ends with the test
		<-synced
	}
	return f
}

func create(t *testing.T, c client.Interface, o api.Object) api.Object {
	t.Helper()
	out, err := c.Create(t.Context(), o, client.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func triggered(name string, triggers ...minik8s.FunctionTrigger) *minik8s.Function {
	f := &minik8s.Function{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: minik8s.FunctionSpec{Source: "x", Triggers: triggers}}
	defaults.Function(f)
	return f
}

// eventsOf are what triggers have called for, in the order of names.
func eventsOf(t *testing.T, c client.Interface) (out []string) {
	t.Helper()
	all, _, err := client.All[*minik8s.FunctionCall](t.Context(), c, api.FunctionCalls, client.ListOptions{Namespace: "default"})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range all {
		_, event, _ := strings.Cut(x.Spec.Caller, ", ")
		event, _, _ = strings.Cut(event, " at ")
		out = append(out, event)
	}
	slices.Sort(out)
	return out
}

// Where the history is gone, what has come since is told from what was changed since.
func TestTriggerCatchesUp(t *testing.T) {
	reg, c := anAPI(t)
	f := controlling(t, reg)
	what := &minik8s.FunctionObjectTrigger{APIVersion: "v1", Kind: "ConfigMap"}
	fn := create(t, c, triggered("f", minik8s.FunctionTrigger{Name: "maps", Object: what})).(*minik8s.Function)
	before := create(t, c, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "before"}})
	create(t, c, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "after"}})
	for at, want := range map[time.Duration]string{-time.Hour: "ConfigMap default/after Created", time.Hour: "ConfigMap default/after Updated"} {
		x := &changes{t: f.triggers, fn: fn, trigger: "maps", what: what, kind: api.ConfigMaps, namespace: "default", selector: labels.Everything(),
			revision: before.GetResourceVersion(), at: clock.Now().Add(at), rate: newRate()}
		if err := x.catchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := eventsOf(t, c); !slices.Contains(got, want) {
			t.Errorf("%v after it was looked at last: %v", at, got)
		}
		now, err := client.Get[*minik8s.Function](t.Context(), c, client.KeyOf(fn))
		if err != nil || stateOf(now, "maps").Revision != x.revision || stateOf(now, "maps").LastTime == nil {
			t.Errorf("%+v, %v", now.Status, err)
		}
	}
	if got := eventsOf(t, c); len(got) != 2 {
		t.Errorf("%v", got)
	}
}

// Where nothing happens it is written now and then up to where that is so: otherwise the history since the last event would be gone.
func TestQuietTrigger(t *testing.T) {
	reg, c := anAPI(t)
	f := controlling(t, reg)
	what := &minik8s.FunctionObjectTrigger{APIVersion: "v1", Kind: "ConfigMap"}
	fn := create(t, c, triggered("f", minik8s.FunctionTrigger{Name: "maps", Object: what})).(*minik8s.Function)
	w := &scripted{events: make(chan client.Event)}
	x := &changes{t: f.triggers, fn: fn, trigger: "maps", what: what, kind: api.ConfigMaps, namespace: "default", selector: labels.Everything(), revision: "1", noted: "1", rate: newRate()}
	done := make(chan error, 1)
	go func() { done <- x.listen(t.Context(), w) }()
	w.events <- client.Event{Type: client.Bookmark, ResourceVersion: "41"}
	w.events <- client.Event{Type: client.Bookmark, ResourceVersion: "42"}
	close(w.events)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	now, err := client.Get[*minik8s.Function](t.Context(), c, client.KeyOf(fn))
	if err != nil || stateOf(now, "maps").Revision != "41" {
		t.Errorf("%+v, %v", now.Status.Triggers, err)
	}
}

type scripted struct{ events chan client.Event }

func (s *scripted) Events() <-chan client.Event { return s.events }
func (s *scripted) Err() error                  { return nil }
func (s *scripted) Stop()                       {}

// A trigger whose call is refused does not keep the others from their times.
func TestRefusedTrigger(t *testing.T) {
	reg, c := anAPI(t)
	f := controlling(t, reg)
	fn := create(t, c, triggered("f", minik8s.FunctionTrigger{Name: "first", Schedule: "@every 1s"}, minik8s.FunctionTrigger{Name: "second", Schedule: "@every 1s"})).(*minik8s.Function)
	past := fn.DeepCopy()
	past.Status.Triggers = []minik8s.FunctionTriggerStatus{{Name: "first", LastTime: &metav1.Time{Time: clock.Now().Add(-time.Minute)}}, {Name: "second", LastTime: &metav1.Time{Time: clock.Now().Add(-time.Minute)}}}
	if _, err := c.Update(t.Context(), past, client.WriteOptions{Subresource: api.StatusSubresource}); err != nil {
		t.Fatal(err)
	}
	f.client = refusing{f.client, "trigger first"}
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		if _, ok := f.functions.Get("default", "f"); ok || time.Since(began) > 10*time.Second {
			break
		}
	}
	err := f.triggers.reconcile(t.Context(), loop.Key{Namespace: "default", Name: "f"})
	if err == nil {
		t.Error("a refusal is no error, and will not be tried again")
	}
	all, _, err := client.All[*minik8s.FunctionCall](t.Context(), c, api.FunctionCalls, client.ListOptions{Namespace: "default"})
	if err != nil || len(all) != 1 || !strings.HasPrefix(all[0].Spec.Caller, "trigger second") || !strings.HasPrefix(all[0].Name, "trigger.f.second-") {
		t.Errorf("%+v, %v", all, err)
	}
}

// A schedule that a wrong clock has seen in the future begins anew.
func TestScheduleAfterAWrongClock(t *testing.T) {
	reg, c := anAPI(t)
	f := controlling(t, reg)
	fn := create(t, c, triggered("f", minik8s.FunctionTrigger{Name: "often", Schedule: "@every 1s"})).(*minik8s.Function).DeepCopy()
	fn.Status.Triggers = []minik8s.FunctionTriggerStatus{{Name: "often", LastTime: &metav1.Time{Time: clock.Now().Add(1000 * time.Hour)}}}
	if _, err := f.triggers.onTime(t.Context(), fn, &fn.Spec.Triggers[0]); err != nil {
		t.Fatal(err)
	}
	now, err := client.Get[*minik8s.Function](t.Context(), c, client.KeyOf(fn))
	if err != nil || stateOf(now, "often").LastTime == nil || stateOf(now, "often").LastTime.After(clock.Now().Add(time.Second)) {
		t.Errorf("%+v, %v", now.Status.Triggers, err)
	}
}

// refusing refuses calls of a caller.
type refusing struct {
	client.Interface
	caller string
}

func (r refusing) Create(ctx context.Context, o api.Object, opts client.WriteOptions) (api.Object, error) {
	if c, ok := o.(*minik8s.FunctionCall); ok && strings.HasPrefix(c.Spec.Caller, r.caller) {
		return nil, apierrors.NewForbidden(api.FunctionCalls.GR(), c.Name, errors.New("quota"))
	}
	return r.Interface.Create(ctx, o, opts)
}
