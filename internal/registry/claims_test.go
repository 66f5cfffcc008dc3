package registry_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/local"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
	"minik8s/internal/store"
	"minik8s/internal/store/memory"
)

// interrupted is a store in which something happens between what a write was made from and the write.
type interrupted struct {
	store.Store
	before func(changes []store.Change)
}

func (s *interrupted) Write(ctx context.Context, changes ...store.Change) (int64, error) {
	if f := s.before; f != nil {
		s.before = nil
		f(changes)
	}
	return s.Store.Write(ctx, changes...)
}

func startOn(t *testing.T, s store.Store) client.Interface {
	t.Helper()
	reg, stop := registrytest.Start(t, s)
	t.Cleanup(stop)
	return local.New(reg, registry.System)
}

func node(name string, cidrs ...string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{PodCIDRs: cidrs}}
}

// What is created while its namespace changes is created in the namespace as it is then, or not at all.
func TestNamespaceChangesMeanwhile(t *testing.T) {
	s := &interrupted{Store: memory.New()}
	admin := startOn(t, s)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "there"}}, client.WriteOptions{})
	must(err)
	create := func(name string) error {
		_, err := admin.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "there", Name: name}}, client.WriteOptions{})
		return err
	}
	s.before = func([]store.Change) {
		ns, err := admin.Get(t.Context(), client.Key{Kind: api.Namespaces, Name: "there"})
		must(err)
		ns = ns.DeepCopyObject().(api.Object)
		ns.SetLabels(map[string]string{"a": "b"})
		_, err = admin.Update(t.Context(), ns, client.WriteOptions{})
		must(err)
	}
	must(create("labelled"))
	s.before = func([]store.Change) {
		_, err := admin.Delete(t.Context(), client.Key{Kind: api.Namespaces, Name: "there"}, nil)
		must(err)
	}
	if err := create("late"); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "because it is being terminated") {
		t.Fatalf("created in a namespace that had begun to go: %v", err)
	}
}

// Of objects that claim the same one gets it, and another after it.
func TestClaims(t *testing.T) {
	admin := startOn(t, memory.New())
	var wg sync.WaitGroup
	refused := make(chan error, 16)
	for i := range cap(refused) {
		wg.Go(func() {
			name := "n" + string(rune('a'+i))
			_, err := admin.Create(t.Context(), node(name, "10.1.0.0/24"), client.WriteOptions{})
			refused <- err
		})
	}
	wg.Wait()
	close(refused)
	won := 0
	for err := range refused {
		if err == nil {
			won++
		} else if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), `spec.podCIDRs: Invalid value: "10.1.0.0/24": is already that of nodes/n`) {
			t.Errorf("refused with %v", err)
		}
	}
	if won != 1 {
		t.Fatalf("%d nodes have one range", won)
	}
	nodes, err := admin.List(t.Context(), api.Nodes, client.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	holder := nodes.Items[0].GetName()

	// By an update too; and what it had before it may give up.
	other, err := admin.Create(t.Context(), node("other"), client.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	take := other.DeepCopyObject().(*corev1.Node)
	take.Spec.PodCIDRs = []string{"10.1.0.0/24"}
	if _, err := admin.Update(t.Context(), take.DeepCopy(), client.WriteOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "nodes/"+holder) {
		t.Fatalf("updated to another's range: %v", err)
	}
	if _, err := admin.Delete(t.Context(), client.Key{Kind: api.Nodes, Name: holder}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Update(t.Context(), take, client.WriteOptions{}); err != nil {
		t.Fatalf("the range is free, and: %v", err)
	}
	if _, err := admin.Create(t.Context(), node(holder, "10.1.0.0/24"), client.WriteOptions{}); !apierrors.IsInvalid(err) {
		t.Fatalf("taken by an update, and given again: %v", err)
	}
}

// Two default classes that are made at the same moment: the one that comes second hears what Kubernetes says.
func TestTwoDefaultClasses(t *testing.T) {
	s := &interrupted{Store: memory.New()}
	admin := startOn(t, s)
	create := func(name string) error {
		_, err := admin.Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, GlobalDefault: true}, client.WriteOptions{})
		return err
	}
	s.before = func([]store.Change) {
		if err := create("first"); err != nil {
			t.Error(err)
		}
	}
	if err := create("second"); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "PriorityClass first is already marked as default") {
		t.Fatalf("got %v", err)
	}
}

// Objects from before their kind claimed anything claim it when the registry starts.
func TestClaimsOfOldObjects(t *testing.T) {
	s := memory.New()
	reg, stop := registrytest.Start(t, s)
	if _, err := local.New(reg, registry.System).Create(t.Context(), node("old", "10.1.0.0/24"), client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	stop()
	page, err := s.List(t.Context(), "/registry/_claims/", "", 0, 0)
	if err != nil || len(page.KVs) != 1 {
		t.Fatal(page, err)
	}
	if _, err := s.Write(t.Context(), store.Drop(page.KVs[0].Key)); err != nil {
		t.Fatal(err)
	}
	admin := startOn(t, s)
	if _, err := admin.Create(t.Context(), node("new", "10.1.0.0/24"), client.WriteOptions{}); !apierrors.IsInvalid(err) {
		t.Fatalf("an old node's range was given again: %v", err)
	}
}

// A write to keys that are none of the registry's does not keep readers waiting.
func TestWriteElsewhere(t *testing.T) {
	s := memory.New()
	admin := startOn(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	read := func() {
		t.Helper()
		if _, err := admin.Get(ctx, client.Key{Kind: api.Namespaces, Name: "default"}); err != nil {
			t.Fatal(err)
		}
	}
	read() // and with that the registry has seen its own first writes
	if _, err := s.Write(ctx, store.Create("/elsewhere", nil)); err != nil {
		t.Fatal(err)
	}
	read()
}
