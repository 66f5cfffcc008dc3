package objects

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/local"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
)

const patience = 20 * time.Second

// shelf is a keeper that reads as node n1 from a registry, and who was told of changes.
type shelf struct {
	*Manager
	t     *testing.T
	admin client.Interface
	told  chan types.UID
}

func newShelf(t *testing.T) *shelf {
	reg := registrytest.New(t)
	s := &shelf{t: t, admin: local.New(reg, registry.System), told: make(chan types.UID, 100)}
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	s.Manager = New(local.New(reg, registry.NodeUser("n1")), slog.New(slog.DiscardHandler), wg.Go, func(u types.UID) { s.told <- u })
	return s
}

func (s *shelf) put(obj api.Object) {
	s.t.Helper()
	obj.SetNamespace("default")
	_, err := s.admin.Create(s.t.Context(), obj, client.WriteOptions{})
	if err != nil {
		_, err = s.admin.Update(s.t.Context(), obj, client.WriteOptions{})
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// uses puts a pod on the node that names the map.
func (s *shelf) uses(name string) {
	s.put(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "uses-" + name}, Spec: corev1.PodSpec{NodeName: "n1",
		Containers: []corev1.Container{{Name: "c", Image: "x", EnvFrom: []corev1.EnvFromSource{
			{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}}}}}})
}

func (s *shelf) await(user types.UID) {
	s.t.Helper()
	select {
	case got := <-s.told:
		if got != user {
			s.t.Errorf("%s was told, not %s", got, user)
		}
	case <-time.After(patience):
		s.t.Fatalf("%s is not told", user)
	}
}

func (s *shelf) value(ref Ref) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	obj, err := s.Get(ctx, ref)
	if err != nil {
		return err.Error()
	}
	return obj.(*corev1.ConfigMap).Data["k"]
}

func theMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"k": value}}
}

func refTo(name string) Ref { return Ref{Kind: api.ConfigMaps, Namespace: "default", Name: name} }

func TestAnObjectIsFollowed(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := newShelf(t)
	t.Cleanup(cancel) // before the keeper is waited for
	s.uses("m")
	if _, err := s.admin.List(ctx, api.Pods, client.ListOptions{}); err != nil { // the node's right is known now
		t.Fatal(err)
	}
	s.Use(ctx, "u1", []Ref{refTo("m")})
	if got := s.value(refTo("m")); got != `configmap "m" not found` {
		t.Error(got)
	}
	s.put(theMap("m", "1"))
	s.await("u1")
	if got := s.value(refTo("m")); got != "1" {
		t.Error(got)
	}
	s.Use(ctx, "u2", []Ref{refTo("m")}) // the same watch
	s.Drop("u1")
	s.put(theMap("m", "2"))
	s.await("u2")
	if got := s.value(refTo("m")); got != "2" {
		t.Error(got)
	}
	if _, err := s.admin.Delete(ctx, client.Key{Kind: api.ConfigMaps, Namespace: "default", Name: "m"}, nil); err != nil {
		t.Fatal(err)
	}
	s.await("u2")
	var missing *Missing
	if _, err := s.Get(ctx, refTo("m")); !errors.As(err, &missing) {
		t.Error(err)
	}
	s.Drop("u2")
	if got := s.value(refTo("m")); !strings.Contains(got, "is not in use") {
		t.Error(got)
	}
}

// TestARefusalIsAskedAgain: the server may learn of the pod later than the node.
func TestARefusalIsAskedAgain(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := newShelf(t)
	t.Cleanup(cancel)
	s.put(theMap("m", "1"))
	s.Use(ctx, "u1", []Ref{refTo("m")})
	if got := s.value(refTo("m")); !strings.Contains(got, "no pod on this node uses it") {
		t.Error(got)
	}
	s.uses("m")
	for s.value(refTo("m")) != "1" {
		s.await("u1")
	}
}
