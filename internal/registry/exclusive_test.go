package registry_test

import (
	"context"
	"fmt"
	"net/netip"
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
	"minik8s/internal/registry/strategy"
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

// A write of a group is alone: two masters that start one each from what neither has written yet do not both write it.
func TestExclusive(t *testing.T) {
	s := &interrupted{Store: memory.New()}
	has := func(obj api.Object) string { return obj.GetAnnotations()["has"] }
	master := func(s store.Store) client.Interface {
		reg, stop := registrytest.Start(t, s)
		t.Cleanup(stop)
		err := reg.AddKind(t.Context(), registrytest.Gadgets, &registry.Strategy{
			Exclusive: func(obj, old api.Object) []string {
				if has(obj) != "" && (old == nil || has(old) != has(obj)) {
					return []string{"gadgets"}
				}
				return nil
			},
			Admit:       func(obj api.Object, others registry.Lister) error { return alone(reg, obj, has) },
			AdmitUpdate: func(obj, _ api.Object, others registry.Lister) error { return alone(reg, obj, has) },
		})
		if err != nil {
			t.Fatal(err)
		}
		return local.New(reg, registry.System)
	}
	admin, other := master(s), master(s.Store)
	create := func(by client.Interface, name, it string) error {
		_, err := by.Create(t.Context(), &registrytest.Gadget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: map[string]string{"has": it}}}, client.WriteOptions{})
		return err
	}
	s.before = func([]store.Change) {
		if err := create(other, "first", "it"); err != nil {
			t.Error(err)
		}
	}
	if err := create(admin, "second", "it"); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "first has it") {
		t.Fatalf("a create that was outrun: %v", err)
	}
	if err := create(admin, "second", "that"); err != nil {
		t.Fatal(err)
	}
	update := func(by client.Interface, name, it string) error {
		obj, err := by.Get(t.Context(), client.Key{Kind: registrytest.Gadgets, Namespace: "default", Name: name})
		if err != nil {
			t.Fatal(err)
		}
		obj = obj.DeepCopyObject().(api.Object)
		obj.SetAnnotations(map[string]string{"has": it})
		_, err = by.Update(t.Context(), obj, client.WriteOptions{})
		return err
	}
	s.before = func([]store.Change) {
		if err := update(other, "first", "new"); err != nil {
			t.Error(err)
		}
	}
	if err := update(admin, "second", "new"); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "first has new") {
		t.Fatalf("an update that was outrun: %v", err)
	}
}

// alone refuses a gadget that has what another has.
func alone(reg *registry.Registry, obj api.Object, has func(api.Object) string) error {
	all, err := local.New(reg, registry.System).List(context.Background(), registrytest.Gadgets, client.ListOptions{})
	if err != nil {
		return err
	}
	for _, other := range all.Items {
		if other.GetName() != obj.GetName() && has(other) != "" && has(other) == has(obj) {
			return fmt.Errorf("%s has %s", other.GetName(), has(obj))
		}
	}
	return nil
}

// Each node gets a range of the cluster's, however many come at once; a range that is asked for is given or refused.
func TestPodRanges(t *testing.T) {
	reg, stop := registrytest.StartWith(t, memory.New(), strategy.Settings{PodRange: netip.MustParsePrefix("10.1.0.0/18")})
	t.Cleanup(stop)
	admin := local.New(reg, registry.System)
	rangeOf := func(n *corev1.Node) string {
		t.Helper()
		obj, err := admin.Create(t.Context(), n, client.WriteOptions{})
		if err != nil {
			return err.Error()
		}
		return obj.(*corev1.Node).Spec.PodCIDR
	}
	if got := rangeOf(node("asks", "10.1.3.0/24")); got != "10.1.3.0/24" {
		t.Fatal(got)
	}
	var wg sync.WaitGroup
	got, want := make([]string, 60), make([]string, 0, 60)
	for i := range got {
		wg.Go(func() { got[i] = rangeOf(node(fmt.Sprint("n", i))) })
		if at := i; at < 3 {
			want = append(want, fmt.Sprintf("10.1.%d.0/24", at))
		} else {
			want = append(want, fmt.Sprintf("10.1.%d.0/24", at+1)) // after the one that was asked for
		}
	}
	wg.Wait()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("ranges %q, want %q", got, want)
	}
	for i, x := range []struct {
		asks []string
		says string
	}{
		{[]string{"10.1.3.128/25"}, "overlaps 10.1.3.0/24 of node asks"},
		{[]string{"10.1.62.0/23"}, "10.1.62.0/23"},
		{[]string{"10.0.0.0/8"}, "overlaps"},
		{[]string{"fd00::/64"}, "expected an IPv4 range"},
		{[]string{"10.9.0.0/24"}, "is not within the cluster's range 10.1.0.0/18"},
		{[]string{"10.1.3.0/24", "fd00::/64"}, "overlaps 10.1.3.0/24 of node asks"},
		{[]string{"10.1.61.0/24", "10.1.60.0/24"}, "one for each IP family"},
		{nil, "10.1.61.0/24"},
		{nil, "every /24 of --cluster-cidr 10.1.0.0/18 has a node"},
	} {
		if got := rangeOf(node(fmt.Sprint("x", i), x.asks...)); !strings.Contains(got, x.says) {
			t.Errorf("%v: %s", x.asks, got)
		}
	}
	// A range that is free again is given again.
	if _, err := admin.Delete(t.Context(), client.Key{Kind: api.Nodes, Name: "asks"}, nil); err != nil {
		t.Fatal(err)
	}
	if got := rangeOf(node("late")); got != "10.1.3.0/24" {
		t.Error(got)
	}
	first, err := admin.Get(t.Context(), client.Key{Kind: api.Nodes, Name: "n0"})
	if err != nil {
		t.Fatal(err)
	}
	cordoned := first.DeepCopyObject().(*corev1.Node)
	cordoned.Spec.Unschedulable = true
	if obj, err := admin.Update(t.Context(), cordoned, client.WriteOptions{}); err != nil || obj.(*corev1.Node).Spec.PodCIDR != first.(*corev1.Node).Spec.PodCIDR {
		t.Errorf("cordoned: %v %v", obj, err)
	}
}

// Two default classes that are made at the same moment: the one that comes second hears what Kubernetes says.
func TestTwoDefaultClasses(t *testing.T) {
	s := &interrupted{Store: memory.New()}
	admin, other := startOn(t, s), startOn(t, s.Store)
	create := func(by client.Interface, name string) error {
		_, err := by.Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, GlobalDefault: true}, client.WriteOptions{})
		return err
	}
	s.before = func([]store.Change) {
		if err := create(other, "first"); err != nil {
			t.Error(err)
		}
	}
	if err := create(admin, "second"); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "PriorityClass first is already marked as default") {
		t.Fatalf("got %v", err)
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
