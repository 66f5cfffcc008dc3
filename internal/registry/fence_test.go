package registry_test

import (
	"context"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/local"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
	"minik8s/internal/registry/strategy"
	"minik8s/internal/store"
	"minik8s/internal/store/memory"
)

// counting is a store that counts the writes it is asked for.
type counting struct {
	store.Store
	writes atomic.Int64
}

func (s *counting) Write(ctx context.Context, changes ...store.Change) (int64, error) {
	s.writes.Add(1)
	return s.Store.Write(ctx, changes...)
}

// fencing is a registry with a Lease, and writers behind fences on it.
type fencing struct {
	t     *testing.T
	store *counting
	reg   *registry.Registry
	admin client.Interface
}

func newFencing(t *testing.T) *fencing {
	f := &fencing{t: t, store: &counting{Store: memory.New()}}
	reg, stop := registrytest.StartWith(t, f.store, strategy.Settings{})
	t.Cleanup(stop)
	f.reg, f.admin = reg, local.New(reg, registry.System)
	f.create(&coordinationv1.Lease{ObjectMeta: meta("lease")})
	return f
}

var leaseKey = client.Key{Kind: api.Leases, Namespace: "default", Name: "lease"}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"name": name}}
}

func (f *fencing) create(obj api.Object) api.Object {
	f.t.Helper()
	made, err := f.admin.Create(f.t.Context(), obj, client.WriteOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return made
}

// leading is a client behind a fence.
type leading struct {
	client.Interface
	reg   *registry.Registry
	fence *registry.Fence
}

// leads returns a client behind a fence on the Lease at a revision.
func (f *fencing) leads(revision int64, fell func()) leading {
	fence := registry.NewFence(api.Leases, "default", "lease", revision, fell)
	return leading{local.New(f.reg, registry.System).Under(fence), f.reg, fence}
}

// revision is that of the Lease.
func (f *fencing) revision() int64 {
	f.t.Helper()
	e, err := f.reg.Get(f.t.Context(), registrytest.Ask("get", api.Leases, "default", "lease", ""))
	if err != nil {
		f.t.Fatal(err)
	}
	return e.Revision()
}

// takeOver has another holder write the Lease.
func (f *fencing) takeOver() {
	f.t.Helper()
	l, err := client.Get[*coordinationv1.Lease](f.t.Context(), f.admin, leaseKey)
	if err != nil {
		f.t.Fatal(err)
	}
	upd := l.DeepCopy()
	upd.Spec.HolderIdentity = new("another" + l.ResourceVersion)
	if _, err := f.admin.Update(f.t.Context(), upd, client.WriteOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

func fencedPod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: meta(name), Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
}

// fencedWrites are all ways to write, and what has to be there before. Each is done to objects of its own name.
var fencedWrites = []struct {
	name   string
	before func(f *fencing, name string)
	write  func(ctx context.Context, c leading, name string) error
}{
	{"create", nil, func(ctx context.Context, c leading, name string) error {
		_, err := c.Create(ctx, &corev1.ConfigMap{ObjectMeta: meta(name)}, client.WriteOptions{})
		return err
	}},
	{"create with a generated name", nil, func(ctx context.Context, c leading, name string) error {
		_, err := c.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: name}}, client.WriteOptions{})
		return err
	}},
	{"create what takes something of its own", nil, func(ctx context.Context, c leading, name string) error {
		_, err := c.Create(ctx, node(name, map[string]string{"first": "10.9.1.0/24", "second": "10.9.2.0/24"}[name]), client.WriteOptions{})
		return err
	}},
	{"update", configMap, func(ctx context.Context, c leading, name string) error {
		_, err := c.Update(ctx, &corev1.ConfigMap{ObjectMeta: meta(name), Data: map[string]string{"a": "b"}}, client.WriteOptions{})
		return err
	}},
	{"update the status", pod, func(ctx context.Context, c leading, name string) error {
		p := fencedPod(name)
		p.Status.Phase = corev1.PodFailed
		_, err := c.Update(ctx, p, client.WriteOptions{Subresource: "status"})
		return err
	}},
	{"update the finalizers of a namespace", func(f *fencing, name string) {
		f.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}, func(ctx context.Context, c leading, name string) error {
		_, err := c.Update(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, client.WriteOptions{Subresource: "finalize"})
		return err
	}},
	{"update away the last finalizer of what is deleted", held, func(ctx context.Context, c leading, name string) error {
		_, err := c.Update(ctx, &corev1.ConfigMap{ObjectMeta: meta(name)}, client.WriteOptions{})
		return err
	}},
	{"patch away the last finalizer of what is deleted", held, patching(api.ConfigMaps, types.MergePatchType, `{"metadata":{"finalizers":null}}`, "")},
	{"merge patch", configMap, patching(api.ConfigMaps, types.MergePatchType, `{"data":{"a":"b"}}`, "")},
	{"JSON patch", configMap, patching(api.ConfigMaps, types.JSONPatchType, `[{"op":"add","path":"/data","value":{"a":"b"}}]`, "")},
	{"strategic merge patch", configMap, patching(api.ConfigMaps, types.StrategicMergePatchType, `{"data":{"a":"b"}}`, "")},
	{"patch the status", pod, patching(api.Pods, types.MergePatchType, `{"status":{"phase":"Failed"}}`, "status")},
	{"patch the scale", func(f *fencing, name string) {
		f.create(&appsv1.ReplicaSet{ObjectMeta: meta(name), Spec: appsv1.ReplicaSetSpec{Selector: metav1.SetAsLabelSelector(meta(name).Labels),
			Template: corev1.PodTemplateSpec{ObjectMeta: meta(name), Spec: fencedPod(name).Spec}}})
	}, patching(api.ReplicaSets, types.MergePatchType, `{"spec":{"replicas":5}}`, "scale")},
	{"apply", configMap, patching(api.ConfigMaps, types.ApplyPatchType, `{"data":{"a":"b"}}`, "")},
	{"apply what is new", nil, patching(api.ConfigMaps, types.ApplyPatchType, `{"data":{"a":"b"}}`, "")},
	{"delete", configMap, deleting(api.ConfigMaps)},
	{"delete what has a finalizer", func(f *fencing, name string) {
		c := &corev1.ConfigMap{ObjectMeta: meta(name)}
		c.Finalizers = []string{"example.com/held"}
		f.create(c)
	}, deleting(api.ConfigMaps)},
	{"delete with a grace period", bound, deleting(api.Pods)},
	{"delete a collection", configMap, func(ctx context.Context, c leading, name string) error {
		_, err := c.DeleteCollection(ctx, api.ConfigMaps, client.ListOptions{Namespace: "default", Labels: labels.SelectorFromSet(meta(name).Labels)}, nil)
		return err
	}},
	{"bind", pod, func(ctx context.Context, c leading, name string) error {
		return c.Bind(ctx, "default", name, "", "n")
	}},
	{"evict", bound, evicting},
	{"evict what is marked already", func(f *fencing, name string) {
		bound(f, name)
		p := fencedPod(name)
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
			Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting", ObservedGeneration: 1}}
		if _, err := f.admin.Update(f.t.Context(), p, client.WriteOptions{Subresource: "status"}); err != nil {
			f.t.Fatal(err)
		}
	}, evicting},
}

func configMap(f *fencing, name string) { f.create(&corev1.ConfigMap{ObjectMeta: meta(name)}) }

func pod(f *fencing, name string) { f.create(fencedPod(name)) }

// bound makes a pod with a node, whose deletion therefore takes a while.
func bound(f *fencing, name string) {
	p := fencedPod(name)
	p.Spec.NodeName = "n"
	f.create(p)
}

// held makes a ConfigMap that is deleted and has a finalizer.
func held(f *fencing, name string) {
	c := &corev1.ConfigMap{ObjectMeta: meta(name)}
	c.Finalizers = []string{"example.com/held"}
	f.create(c)
	if _, err := f.admin.Delete(f.t.Context(), client.KeyOf(c), nil); err != nil {
		f.t.Fatal(err)
	}
}

type fencedWrite = func(ctx context.Context, c leading, name string) error

func patching(kind *api.Kind, as types.PatchType, data, sub string) fencedWrite {
	return func(ctx context.Context, c leading, name string) error {
		if as == types.ApplyPatchType {
			data = `{"apiVersion":"` + kind.APIVersion() + `","kind":"` + kind.Kind + `","metadata":{"name":"` + name + `"},"data":{"a":"b"}}`
		}
		_, err := c.Patch(ctx, client.Key{Kind: kind, Namespace: "default", Name: name}, client.Patch{Type: as, Data: []byte(data)},
			client.WriteOptions{Subresource: sub, FieldManager: "test"})
		return err
	}
}

func deleting(kind *api.Kind) fencedWrite {
	return func(ctx context.Context, c leading, name string) error {
		_, err := c.Delete(ctx, client.Key{Kind: kind, Namespace: "default", Name: name}, nil)
		return err
	}
}

// evicting evicts a pod. client.Interface has no call for it, so the request gets the fence here.
func evicting(ctx context.Context, c leading, name string) error {
	q := registrytest.Ask("create", api.Pods, "default", name, "eviction")
	q.Fence = c.fence
	_, err := c.reg.Act(ctx, q, &policyv1.Eviction{}, registry.WriteOptions{})
	return err
}

// Whatever a leader writes is written while its Lease is as it left it. When the Lease was changed or deleted, every
// kind of write is refused, changes nothing, and says why; the leader is told once, and asks the store no more.
func TestFence(t *testing.T) {
	f := newFencing(t)
	ctx := t.Context()
	for _, x := range fencedWrites {
		t.Run(x.name, func(t *testing.T) {
			f.t = t
			defer f.clear()
			for _, name := range []string{"first", "second"} {
				if x.before != nil {
					x.before(f, name)
				}
			}
			fell := 0
			c, stood := f.leads(f.revision(), func() { fell++ }), f.now()
			if err := x.write(ctx, c, "first"); err != nil || fell != 0 {
				t.Fatalf("refused though the fence stands: %v", err)
			}
			if f.now() == stood {
				t.Fatal("it writes nothing: the test tests nothing")
			}
			f.takeOver()
			before := f.now()
			for try := range 2 {
				asked := f.store.writes.Load()
				err := x.write(ctx, c, "second")
				if apierrors.ReasonForError(err) != api.ReasonDeposed || apierrors.IsConflict(err) || fell != 1 {
					t.Errorf("try %d behind a fallen fence: %v, told %d times", try, err, fell)
				}
				if f.now() != before {
					t.Errorf("try %d: it was refused and changed something", try)
				}
				if n := f.store.writes.Load() - asked; n != int64(1-try) {
					t.Errorf("try %d: the store was asked %d times", try, n)
				}
			}
			if _, err := f.admin.Delete(ctx, leaseKey, nil); err != nil {
				t.Fatal(err)
			}
			if err := x.write(ctx, f.leads(before, nil), "second"); apierrors.ReasonForError(err) != api.ReasonDeposed {
				t.Errorf("without the Lease: %v", err)
			}
			f.create(&coordinationv1.Lease{ObjectMeta: meta("lease")})
			if err := x.write(ctx, leading{f.admin, f.reg, nil}, "second"); err != nil {
				t.Errorf("another cannot write what was refused: %v", err)
			}
		})
	}
}

// now is the store's revision.
func (f *fencing) now() int64 {
	f.t.Helper()
	rev, err := f.store.Revision(context.Background())
	if err != nil {
		f.t.Fatal(err)
	}
	return rev
}

// clear removes what a case has made.
func (f *fencing) clear() {
	now := int64(0)
	for _, kind := range []*api.Kind{api.ConfigMaps, api.Pods, api.ReplicaSets, api.Nodes} {
		list, err := f.admin.List(context.Background(), kind, client.ListOptions{})
		if err != nil {
			f.t.Fatal(err)
		}
		for _, obj := range list.Items {
			if len(obj.GetFinalizers()) > 0 {
				f.admin.Patch(context.Background(), client.KeyOf(obj), client.Patch{Type: types.MergePatchType, Data: []byte(`{"metadata":{"finalizers":null}}`)}, client.WriteOptions{}) //nolint:errcheck // it may go by that
			}
			f.admin.Delete(context.Background(), client.KeyOf(obj), &metav1.DeleteOptions{GracePeriodSeconds: &now}) //nolint:errcheck // as above
		}
	}
}

// The fence comes before what else is wrong: a deposed leader whose object another has changed is not told to try
// again with the newer one.
func TestFenceBeforeConflict(t *testing.T) {
	f := newFencing(t)
	configMap(f, "c")
	c := f.leads(f.revision(), nil)
	between := &interrupted{Store: f.store.Store}
	f.store.Store = between
	between.before = func([]store.Change) {
		f.takeOver()
		if _, err := f.admin.Update(t.Context(), &corev1.ConfigMap{ObjectMeta: meta("c"), Data: map[string]string{"by": "another"}}, client.WriteOptions{}); err != nil {
			t.Error(err)
		}
	}
	asked := f.store.writes.Load()
	_, err := c.Update(t.Context(), &corev1.ConfigMap{ObjectMeta: meta("c"), Data: map[string]string{"by": "me"}}, client.WriteOptions{})
	if apierrors.ReasonForError(err) != api.ReasonDeposed {
		t.Errorf("got %v", err)
	}
	if n := f.store.writes.Load() - asked; n != 3 {
		t.Errorf("%d writes, of which two are the others'", n)
	}
}

// A leader may write the very Lease that is its fence; that ends its term.
func TestFenceOnItself(t *testing.T) {
	f := newFencing(t)
	fell := 0
	c := f.leads(f.revision(), func() { fell++ })
	if _, err := c.Delete(t.Context(), leaseKey, nil); err != nil || fell != 0 {
		t.Fatal(err, fell)
	}
	_, err := c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: meta("c")}, client.WriteOptions{})
	if apierrors.ReasonForError(err) != api.ReasonDeposed || fell != 1 {
		t.Errorf("got %v", err)
	}
}

// Reads, and writes that change nothing, are not refused.
func TestFenceLetsRead(t *testing.T) {
	f := newFencing(t)
	configMap(f, "c")
	c := f.leads(f.revision(), nil)
	f.takeOver()
	if _, err := c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: meta("d")}, client.WriteOptions{}); apierrors.ReasonForError(err) != api.ReasonDeposed {
		t.Fatal(err)
	}
	if _, err := c.Get(t.Context(), client.Key{Kind: api.ConfigMaps, Namespace: "default", Name: "c"}); err != nil {
		t.Error(err)
	}
	if list, err := c.List(t.Context(), api.ConfigMaps, client.ListOptions{}); err != nil || len(list.Items) != 1 {
		t.Error(list, err)
	}
}
