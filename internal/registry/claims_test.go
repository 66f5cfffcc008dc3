package registry_test

import (
	"context"
	"fmt"
	"slices"
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

// startClaiming has gadgets claim what their annotation says.
func startClaiming(t *testing.T, s store.Store) client.Interface {
	t.Helper()
	reg, stop := registrytest.Start(t, s)
	t.Cleanup(stop)
	err := reg.AddKind(t.Context(), registrytest.Gadgets, &registry.Strategy{Claims: func(obj api.Object) []registry.Claim {
		if v := obj.GetAnnotations()["has"]; v != "" {
			return []registry.Claim{{Name: "gadgets/" + v, Field: "metadata.annotations[has]", Value: v}}
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return local.New(reg, registry.System)
}

func gadget(name, has string) *registrytest.Gadget {
	return &registrytest.Gadget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: map[string]string{"has": has}}}
}

// Of objects that claim the same one gets it, and another after it.
func TestClaims(t *testing.T) {
	admin := startClaiming(t, memory.New())
	var wg sync.WaitGroup
	refused := make(chan error, 16)
	for i := range cap(refused) {
		wg.Go(func() {
			_, err := admin.Create(t.Context(), gadget("g"+string(rune('a'+i)), "it"), client.WriteOptions{})
			refused <- err
		})
	}
	wg.Wait()
	close(refused)
	won := 0
	for err := range refused {
		if err == nil {
			won++
		} else if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), `metadata.annotations[has]: Invalid value: "it": is already that of test.minik8s.io/gadgets/default/g`) {
			t.Errorf("refused with %v", err)
		}
	}
	if won != 1 {
		t.Fatalf("%d have it", won)
	}
	all, err := admin.List(t.Context(), registrytest.Gadgets, client.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	holder := all.Items[0].GetName()

	// By an update too; and what it had before it gives up.
	obj, err := admin.Create(t.Context(), gadget("other", "that"), client.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	take := obj.DeepCopyObject().(*registrytest.Gadget)
	take.Annotations["has"] = "it"
	if _, err := admin.Update(t.Context(), take.DeepCopyObject().(api.Object), client.WriteOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "/"+holder) {
		t.Fatalf("updated to what another has: %v", err)
	}
	if _, err := admin.Delete(t.Context(), client.Key{Kind: registrytest.Gadgets, Namespace: "default", Name: holder}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Update(t.Context(), take, client.WriteOptions{}); err != nil {
		t.Fatalf("it is free, and: %v", err)
	}
	if _, err := admin.Create(t.Context(), gadget(holder, "it"), client.WriteOptions{}); !apierrors.IsInvalid(err) {
		t.Fatalf("taken by an update, and given again: %v", err)
	}
	if _, err := admin.Create(t.Context(), gadget(holder, "that"), client.WriteOptions{}); err != nil {
		t.Fatalf("given up by an update, and: %v", err)
	}
}

// Nodes that wish for the same range of pod addresses get one each.
func TestPodRanges(t *testing.T) {
	admin := startOn(t, memory.New())
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			if _, err := admin.Create(t.Context(), node("n"+string(rune('a'+i)), "10.1.255.0/24"), client.WriteOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	nodes, err := admin.List(t.Context(), api.Nodes, client.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for i, n := range nodes.Items {
		got = append(got, n.(*corev1.Node).Spec.PodCIDR)
		want = append(want, []string{"10.1.255.0/24", fmt.Sprintf("10.2.%d.0/24", i-1)}[min(i, 1)])
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("ranges %v, want %v", got, want)
	}
	// One that has none yet gets the same care when it says its wish.
	late, err := admin.Create(t.Context(), node("late"), client.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wish := late.DeepCopyObject().(*corev1.Node)
	wish.Spec.PodCIDR, wish.Spec.PodCIDRs = "10.1.255.0/24", []string{"10.1.255.0/24"}
	if obj, err := admin.Update(t.Context(), wish, client.WriteOptions{}); err != nil || obj.(*corev1.Node).Spec.PodCIDR != "10.2.15.0/24" {
		t.Errorf("%v %v", obj, err)
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
	create := func(reg *registry.Registry, name string) error {
		_, err := local.New(reg, registry.System).Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, GlobalDefault: true}, client.WriteOptions{})
		return err
	}
	if err := create(reg, "old"); err != nil {
		t.Fatal(err)
	}
	stop()
	page, err := s.List(t.Context(), "/registry/_claims/", "", 0, 0)
	if err != nil || len(page.KVs) != 1 {
		t.Fatal(page, err)
	}
	claim := page.KVs[0]
	if _, err := s.Write(t.Context(), store.Drop(claim.Key)); err != nil {
		t.Fatal(err)
	}
	_, stop = registrytest.Start(t, s)
	defer stop()
	if again, err := s.Get(t.Context(), claim.Key); err != nil || string(again.Value) != string(claim.Value) {
		t.Fatalf("%s, %v; want %s", again.Value, err, claim.Value)
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
