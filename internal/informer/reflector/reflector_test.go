package reflector_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/informer/reflector"
)

// scripted is an API whose watches follow a script: each is opened with an error, or sends its events and ends.
type scripted struct {
	client.Interface
	script []watch
	opened []string // the revisions at which watches were opened
	end    context.CancelFunc
}

type watch struct {
	refused error
	events  []client.Event
	broken  error
}

func (s *scripted) Watch(_ context.Context, _ *api.Kind, opts client.WatchOptions) (client.Watcher, error) {
	s.opened = append(s.opened, opts.ResourceVersion)
	if len(s.script) == 0 {
		s.end()
		return nil, context.Canceled
	}
	next := s.script[0]
	s.script = s.script[1:]
	if next.refused != nil {
		return nil, next.refused
	}
	ch := make(chan client.Event, len(next.events))
	for _, e := range next.events {
		ch <- e
	}
	close(ch)
	return watcher{ch, next.broken}, nil
}

type watcher struct {
	events chan client.Event
	err    error
}

func (w watcher) Events() <-chan client.Event { return w.events }
func (w watcher) Err() error                  { return w.err }
func (w watcher) Stop()                       {}

func change(kind client.EventType, name, revision string) client.Event {
	return client.Event{Type: kind, ResourceVersion: revision, Object: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}}
}

func initialEnd(revision string) client.Event {
	return client.Event{Type: client.Bookmark, ResourceVersion: revision, InitialEnd: true}
}

// What a reflector asks and tells, by what its watches do.
func TestRecovery(t *testing.T) {
	lost := errors.New("connection lost")
	expired := apierrors.NewResourceExpired("too old resource version")
	first := watch{events: []client.Event{change(client.Added, "a", "1"), change(client.Added, "b", "2"), initialEnd("5")}}
	for name, c := range map[string]struct {
		script []watch
		opened []string
		told   []string
	}{
		"goes on where it was": {
			[]watch{first, {events: []client.Event{change(client.Modified, "a", "6"), change(client.Deleted, "b", "7")}, broken: lost}},
			[]string{"", "5", "7"}, []string{"all a b", "MODIFIED a", "DELETED b"}},
		"bookmarks count": {
			[]watch{first, {events: []client.Event{{Type: client.Bookmark, ResourceVersion: "9"}}}},
			[]string{"", "5", "9"}, []string{"all a b", "BOOKMARK"}},
		"begins again when the history is gone": {
			[]watch{first, {refused: expired}, {events: []client.Event{initialEnd("8")}}},
			[]string{"", "5", "", "8"}, []string{"all a b", "failed", "all"}},
		"and when that shows only in the watch": {
			[]watch{first, {broken: expired}, {events: []client.Event{initialEnd("8")}}},
			[]string{"", "5", "", "8"}, []string{"all a b", "failed", "all"}},
		"and when it has brought something before": {
			[]watch{first, {events: []client.Event{change(client.Modified, "a", "6")}, broken: expired}, {events: []client.Event{initialEnd("8")}}},
			[]string{"", "5", "", "8"}, []string{"all a b", "MODIFIED a", "all"}},
		"not when the server cannot be reached": {
			[]watch{first, {refused: lost}, {broken: lost}},
			[]string{"", "5", "5", "5"}, []string{"all a b", "failed", "failed"}},
		"half of the first objects are none": {
			[]watch{{events: []client.Event{change(client.Added, "a", "1")}}, first},
			[]string{"", "", "5"}, []string{"failed", "all a b"}},
		"refused at first": {
			[]watch{{refused: apierrors.NewForbidden(api.ConfigMaps.GR(), "a", lost)}, first},
			[]string{"", "", "5"}, []string{"failed", "all a b"}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			s := &scripted{script: c.script, end: cancel}
			var told []string
			r := reflector.Reflector{Client: s, Kind: api.ConfigMaps, Log: slog.New(slog.DiscardHandler),
				Replace: func(items []api.Object, _ string) {
					line := "all"
					for _, obj := range items {
						line += " " + obj.GetName()
					}
					told = append(told, line)
				},
				Apply: func(e client.Event) {
					line := string(e.Type)
					if e.Object != nil {
						line += " " + e.Object.GetName()
					}
					told = append(told, line)
				},
				Failed: func(error) { told = append(told, "failed") }}
			r.Run(ctx)
			if !slices.Equal(s.opened, c.opened) || !slices.Equal(told, c.told) {
				t.Errorf("opened at %q, want %q; told %q, want %q", s.opened, c.opened, told, c.told)
			}
		})
	}
}

// A watch that was open for long and then breaks is opened again at once, whatever failed before it.
func TestPauseBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		lost := errors.New("connection lost")
		calls := 0
		var pauses []time.Duration
		reflector.Recover(ctx, "5", func(context.Context, string) (string, error) {
			if calls++; calls == 4 || calls == 6 {
				time.Sleep(10 * time.Second) // it was open, and there was nothing to tell
			}
			return "5", lost
		}, func(_ error, pause time.Duration, _ bool) {
			if pauses = append(pauses, pause/time.Millisecond); len(pauses) == 7 {
				cancel()
			}
		})
		if want := []time.Duration{50, 100, 200, 50, 100, 50, 100}; !slices.Equal(pauses, want) {
			t.Errorf("pauses of %d ms, want %d", pauses, want)
		}
	})
}

// After its end a reflector calls nobody, also when events wait.
func TestEndsAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := &scripted{end: cancel, script: []watch{{events: []client.Event{initialEnd("1"), change(client.Added, "a", "2"), change(client.Added, "b", "3")}}}}
	var told []string
	r := reflector.Reflector{Client: s, Kind: api.ConfigMaps, Log: slog.New(slog.DiscardHandler),
		Replace: func([]api.Object, string) {},
		Apply: func(e client.Event) {
			told = append(told, fmt.Sprint(e.Object.GetName()))
			cancel()
		}}
	r.Run(ctx)
	if !slices.Equal(told, []string{"a"}) {
		t.Errorf("told %q", told)
	}
}

// A caller that has listed already gets what came since, and no list unless the history is gone.
func TestFrom(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s := &scripted{end: cancel, script: []watch{
		{events: []client.Event{change(client.Deleted, "a", "6")}, broken: errors.New("connection lost")},
		{refused: apierrors.NewResourceExpired("too old resource version")},
		{events: []client.Event{change(client.Added, "c", "4"), initialEnd("9")}}}}
	var told []string
	r := reflector.Reflector{Client: s, Kind: api.ConfigMaps, From: "5", Log: slog.New(slog.DiscardHandler),
		Replace: func(items []api.Object, _ string) { told = append(told, fmt.Sprint("all ", len(items))) },
		Apply:   func(e client.Event) { told = append(told, string(e.Type)) }}
	r.Run(ctx)
	if !slices.Equal(s.opened, []string{"5", "6", "", "9"}) || !slices.Equal(told, []string{"DELETED", "all 1"}) {
		t.Errorf("opened at %q, told %q", s.opened, told)
	}
}
