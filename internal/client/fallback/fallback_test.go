package fallback_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/clienttest"
	"minik8s/internal/client/fallback"
	"minik8s/internal/client/local"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
)

// two are the state of both clients.
type two struct {
	first, second client.Interface
	here, there   atomic.Bool // the first and the second are there
	well          atomic.Bool
	left          atomic.Int32
}

func (s *two) client(t *testing.T) *fallback.Client {
	given := func(i client.Interface, ok *atomic.Bool) func() client.Interface {
		return func() client.Interface {
			if ok.Load() {
				return i
			}
			return nil
		}
	}
	return fallback.New(t.Context(), fallback.Config{First: given(s.first, &s.here), Second: given(s.second, &s.there),
		Well: s.well.Load, Leave: func() { s.left.Add(1) }, Log: slog.New(slog.DiscardHandler)})
}

// Whichever of the two is used, it is a client like any other.
func TestContract(t *testing.T) {
	for _, second := range []bool{false, true} {
		clienttest.Run(t, func(t *testing.T) client.Interface {
			real := local.New(registrytest.New(t), registry.System)
			s := &two{first: real, second: real}
			s.here.Store(!second)
			s.there.Store(true)
			return s.client(t)
		})
	}
}

func TestChanges(t *testing.T) {
	a, b := local.New(registrytest.New(t), registry.System), local.New(registrytest.New(t), registry.System)
	for name, c := range map[string]client.Interface{"a": a, "b": b} {
		if _, err := c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}, client.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	s := &two{first: a, second: b}
	c := s.client(t)
	who := func() string {
		for _, name := range []string{"a", "b"} {
			_, err := c.Get(t.Context(), client.Key{Kind: api.ConfigMaps, Namespace: "default", Name: name})
			if err == nil {
				return name
			}
			if apierrors.IsServiceUnavailable(err) {
				return "nobody"
			}
		}
		return "?"
	}
	expect := func(what, want string) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); who() != want; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: %s answers, want %s", what, who(), want)
			}
		}
	}
	watch := func() client.Watcher {
		t.Helper()
		w, err := c.Watch(t.Context(), api.ConfigMaps, client.WatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	ended := func(what string, w client.Watcher) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		for {
			select {
			case _, ok := <-w.Events():
				if !ok {
					return
				}
			case <-ctx.Done():
				t.Fatal("a watch goes on: " + what)
			}
		}
	}
	if got := who(); got != "nobody" {
		t.Errorf("before either is there: %s", got)
	}
	s.there.Store(true)
	expect("only the second is there", "b")
	w := watch()
	s.here.Store(true)
	s.well.Store(true)
	expect("the first has come", "a")
	ended("of the second", w)

	w = watch()
	s.well.Store(false)
	c.Useless()
	if got := who(); got != "b" {
		t.Errorf("when the first is of no use: %s", got)
	}
	ended("of the first", w)
	c.Useless()
	if s.left.Load() != 1 {
		t.Error("the second is of no use either, and nobody is told")
	}
	s.well.Store(true)
	expect("the first is of use again", "a")

	s.there.Store(false)
	c.Useless()
	if got := who(); got != "a" {
		t.Errorf("while there is no second: %s", got)
	}
	w = watch()
	w.Stop()
	ended("that was stopped", w)
}
