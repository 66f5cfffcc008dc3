// Package registrytest gives tests a running registry. Only tests import it.
package registrytest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"log/slog"
	"testing"

	corev1 "k8s.io/api/core/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/registry"
	"minik8s/internal/registry/strategy"
	"minik8s/internal/store"
	"minik8s/internal/store/memory"
	"minik8s/internal/tokens"
)

// New returns a registry with the namespaces default and kube-node-lease, over a store in memory. It runs until the
// test ends.
func New(t testing.TB) *registry.Registry {
	t.Helper()
	reg, stop := StartWith(t, memory.New(), strategy.Settings{Tokens: Signer(t)})
	t.Cleanup(stop)
	return reg
}

// Start returns a registry over a given store, for tests that restart it; stop ends it.
func Start(t testing.TB, s store.Store) (reg *registry.Registry, stop func()) {
	t.Helper()
	return StartWith(t, s, strategy.Settings{})
}

// StartWith is Start with settings.
func StartWith(t testing.TB, s store.Store, set strategy.Settings) (reg *registry.Registry, stop func()) {
	t.Helper()
	reg = registry.New(s, strategy.All(set), slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		if err := reg.Run(ctx, func() { close(ready) }); err != nil {
			t.Error(err)
		}
	}()
	<-ready
	for _, ns := range []string{corev1.NamespaceDefault, corev1.NamespaceNodeLease} {
		if err := reg.Ensure(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}); err != nil {
			t.Fatal(err)
		}
	}
	return reg, func() {
		if err := reg.CheckShared(); err != nil {
			t.Error(err)
		}
		cancel()
		<-done
	}
}

// Ask returns a request by the daemon itself; tests may set another User.
func Ask(verb string, kind *api.Kind, namespace, name, sub string) *registry.Request {
	q := &registry.Request{User: registry.System, Verb: verb, Kind: kind, Namespace: namespace, Name: name, Sub: sub}
	if kind.View != nil {
		q.Kind, q.View = kind.View.Of, kind
	}
	return q
}

// Signer returns a token authority with a new key, for one test.
func Signer(t testing.TB) *tokens.Authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a, err := tokens.New(key, "https://kubernetes.default.svc.cluster.local")
	if err != nil {
		t.Fatal(err)
	}
	return a
}
