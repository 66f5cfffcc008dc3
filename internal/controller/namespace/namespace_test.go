package namespace

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/faulty"
	ct "minik8s/internal/controller/controllertest"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
)

const hold = "test.minik8s.io/hold"

var quiet = slog.New(slog.DiscardHandler)

// fill makes a namespace with so many objects of several kinds, among them pods that run.
func fill(c *ct.Cluster, ns string, many int) {
	ct.Create(c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
	for i := range many {
		meta := metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprintf("x-%d", i)}
		ct.Create(c, &corev1.ConfigMap{ObjectMeta: meta})
		ct.Create(c, &corev1.Secret{ObjectMeta: meta})
		ct.Create(c, &corev1.ServiceAccount{ObjectMeta: meta})
		ct.Create(c, &corev1.Pod{ObjectMeta: meta, Spec: ct.Template("x", "x:1").Spec})
		ct.Create(c, &appsv1.ReplicaSet{ObjectMeta: meta,
			Spec: appsv1.ReplicaSetSpec{Selector: ct.Selector("x"), Template: ct.Template("x", "x:1")}})
	}
}

// held makes a ConfigMap that is not deleted before release.
func held(c *ct.Cluster, ns string) (release func()) {
	cm := ct.Create(c, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "held", Finalizers: []string{hold}}})
	return func() {
		upd := cm.DeepCopy()
		upd.Finalizers, upd.ResourceVersion = nil, ""
		if _, err := c.Admin().Update(c.Context(), upd, client.WriteOptions{}); err != nil {
			panic(err)
		}
	}
}

func remove(t *testing.T, c *ct.Cluster, ns string) {
	t.Helper()
	if _, err := c.Admin().Delete(c.Context(), client.Key{Kind: api.Namespaces, Name: ns}, nil); err != nil {
		t.Fatal(err)
	}
}

func find(list []*corev1.Namespace, name string) *corev1.Namespace {
	for _, ns := range list {
		if ns.Name == name {
			return ns
		}
	}
	return nil
}

// says waits until a namespace's condition says something.
func says(c *ct.Cluster, ns string, t corev1.NamespaceConditionType, what string) {
	ct.Until(c, string(t)+" says "+what, api.Namespaces, func(list []*corev1.Namespace) bool {
		n := find(list, ns)
		return n != nil && n.Status.Phase == corev1.NamespaceTerminating && strings.Contains(condition(n.Status.Conditions, t).Message, what)
	})
}

func gonesoon(c *ct.Cluster, ns string) {
	ct.Until(c, "gone", api.Namespaces, func(list []*corev1.Namespace) bool { return find(list, ns) == nil })
}

// in counts the objects of a namespace, except for one name.
func in(list []api.Object, ns, but string) int {
	n := 0
	for _, obj := range list {
		if obj.GetNamespace() == ns && obj.GetName() != but {
			n++
		}
	}
	return n
}

// content is how many objects there are in a namespace.
func content(t *testing.T, c *ct.Cluster, ns string) int {
	t.Helper()
	n := 0
	for _, kind := range api.Kinds {
		if kind.Namespaced {
			list, err := c.Admin().List(c.Context(), kind, client.ListOptions{Namespace: ns})
			if err != nil {
				t.Fatal(err)
			}
			n += len(list.Items)
		}
	}
	return n
}

// A large namespace goes, whatever happens to the controller's calls; one object holds it, the namespace
// says so, and a neighbour loses nothing.
func TestEmptiesInSpiteOfFaults(t *testing.T) {
	for name, rates := range map[string]faulty.Rates{
		"none":     {},
		"drop":     {Drop: 0.05}, // a round has some thirty calls, and one that fails brings it again
		"lose":     {Lose: 0.1},
		"conflict": {Conflict: 0.2},
		"repeat":   {Repeat: 0.3, Break: 0.1},
		"all":      {Drop: 0.05, Lose: 0.05, Conflict: 0.1, Repeat: 0.1, Break: 0.05},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const many = 20
			c := ct.New(t)
			c.Hollow(nil, "n1", "n2")
			fill(c, "large", many)
			fill(c, "other", 1)
			release := held(c, "large")
			shaky := faulty.New(c.As("namespace-controller"), rates, 1)
			c.Start(New(shaky, nil, c.Kinds(), quiet).Run)
			remove(t, c, "large")
			for _, kind := range kindsButPods(c.Kinds()) {
				ct.Until(c, kind.String()+" gone", kind, func(list []api.Object) bool { return in(list, "large", "held") == 0 })
			}
			shaky.Heal()
			says(c, "large", corev1.NamespaceContentRemaining, "remaining: configmaps. has 1 resource instances")
			says(c, "large", corev1.NamespaceFinalizersRemaining, "remaining: "+hold+" in 1 resource instances")
			release()
			gonesoon(c, "large")
			if left := content(t, c, "large"); left != 0 {
				t.Errorf("%d objects outlived their namespace", left)
			}
			if left := content(t, c, "other"); left != 5 {
				t.Errorf("the neighbour has %d objects", left)
			}
		})
	}
}

// Nothing but pods is deleted while a pod exists.
func TestPodsGoFirst(t *testing.T) {
	c := ct.New(t)
	c.Start(New(c.As("namespace-controller"), c.Views(), c.Kinds(), quiet).Run)
	fill(c, "x", 1)
	pod := ct.Create(c, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "held", Finalizers: []string{hold}}, Spec: ct.Template("x", "x:1").Spec})
	remove(t, c, "x")
	says(c, "x", corev1.NamespaceFinalizersRemaining, hold)
	if left := content(t, c, "x"); left != 5 { // the fill without its pod, and the one that is held
		t.Errorf("%d objects are left", left)
	}
	free := client.Patch{Type: "application/merge-patch+json", Data: []byte(`{"metadata":{"finalizers":null}}`)}
	if _, err := c.Admin().Patch(c.Context(), client.KeyOf(pod), free, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	gonesoon(c, "x")
}

// Objects of a kind that was added after the controller's start are deleted with their namespace, too.
func TestAddKind(t *testing.T) {
	c := ct.New(t)
	c.Start(New(c.As("namespace-controller"), c.Views(), c.Kinds(), quiet).Run)
	c.AddKind(registrytest.Gadgets, &registry.Strategy{})
	ct.Create(c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x"}})
	ct.Create(c, &registrytest.Gadget{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "g"}})
	remove(t, c, "x")
	gonesoon(c, "x")
	ct.Until(c, "the gadget is gone", registrytest.Gadgets, func(list []*registrytest.Gadget) bool { return len(list) == 0 })
}

// broken cannot delete Secrets while bad is set.
type broken struct {
	client.Interface
	bad atomic.Bool
}

func (b *broken) Delete(ctx context.Context, key client.Key, opts *metav1.DeleteOptions) (api.Object, error) {
	if key.Kind == api.Secrets && b.bad.Load() {
		return nil, fmt.Errorf("not today")
	}
	return b.Interface.Delete(ctx, key, opts)
}

// What cannot be deleted is named, and does not stop other deletions.
func TestSaysWhatFails(t *testing.T) {
	c := ct.New(t)
	b := &broken{Interface: c.As("namespace-controller")}
	b.bad.Store(true)
	c.Start(New(b, nil, c.Kinds(), quiet).Run)
	fill(c, "x", 2)
	remove(t, c, "x")
	says(c, "x", corev1.NamespaceDeletionContentFailure, "secrets x-0: not today")
	says(c, "x", corev1.NamespaceContentRemaining, "secrets. has 2 resource instances")
	if left := content(t, c, "x"); left != 2 {
		t.Errorf("%d objects are left beside the secrets", left-2)
	}
	b.bad.Store(false)
	gonesoon(c, "x")
}

// counting counts lists.
type counting struct {
	client.Interface
	lists atomic.Int32
}

func (n *counting) List(ctx context.Context, kind *api.Kind, opts client.ListOptions) (*client.List, error) {
	n.lists.Add(1)
	return n.Interface.List(ctx, kind, opts)
}

// A waiting namespace does not poll: one round begins the deletion, and one more finds it empty.
func TestWaitsWithoutAsking(t *testing.T) {
	c := ct.New(t)
	n := &counting{Interface: c.As("namespace-controller")}
	c.Start(New(n, nil, c.Kinds(), quiet).Run)
	ct.Create(c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x"}})
	release := held(c, "x")
	remove(t, c, "x")
	says(c, "x", corev1.NamespaceFinalizersRemaining, hold)
	release()
	gonesoon(c, "x")
	kinds := int32(len(kindsButPods(c.Kinds())) + 1)
	if got, most := n.lists.Load(), 3*(kinds+1); got > most { // one more round than needed, for a slow machine
		t.Errorf("%d lists, more than %d", got, most)
	}
}
