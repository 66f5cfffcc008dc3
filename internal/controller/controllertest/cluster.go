// Package controllertest is a cluster in memory for the tests of controllers: a store without a disk, the real
// registry over it, and hollow nodes that bind pods and report them as running.
//
// Tests use it, and nothing else. They wait on conditions, through watches; it has no sleeps.
package controllertest

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/local"
	"minik8s/internal/informer"
	"minik8s/internal/registry"
	"minik8s/internal/registry/strategy"
	"minik8s/internal/store/memory"
)

// patience bounds every wait: it is reached only when something is broken.
const patience = 60 * time.Second

// Cluster is a registry with nothing around it.
type Cluster struct {
	t   testing.TB
	reg *registry.Registry
	ctx context.Context
	wg  sync.WaitGroup
	// views are shared by the parts of the cluster, as by those of a master.
	views *informer.Views
}

// New starts a cluster that ends with the test.
func New(t testing.TB) *Cluster {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := &Cluster{t: t, ctx: ctx, reg: registry.New(memory.New(), strategy.All(strategy.Settings{}), slog.New(slog.DiscardHandler))}
	c.views = informer.NewViews(c.As("views"), slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		cancel()
		c.wg.Wait()
	})
	c.Start(c.reg.Run)
	if err := c.reg.Ensure(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceDefault}}); err != nil {
		t.Fatal(err)
	}
	return c
}

// Start runs a part and returns once it is ready. kill ends the part, whatever it is doing, and returns when it has
// ended. It ends with the test at the latest.
func (c *Cluster) Start(run func(ctx context.Context, ready func()) error) (kill func()) {
	c.t.Helper()
	ready, ended := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(c.ctx)
	c.wg.Add(1)
	go func() {
		defer c.wg.Done()
		defer close(ended)
		run(ctx, sync.OnceFunc(func() { close(ready) })) //nolint:errcheck // it ends with its context
	}()
	select {
	case <-ready:
	case <-time.After(patience):
		c.t.Fatal("the part was not ready in time")
	}
	return func() {
		cancel()
		<-ended
	}
}

// As is a client with the identity of a part, which may do what the part may.
func (c *Cluster) As(part string) client.Interface { return local.New(c.reg, registry.Part(part)) }

// Under is a client with the identity of a part that writes only while the object is at this version; fell is called
// when it is not.
func (c *Cluster) Under(part string, lock api.Object, fell func()) client.Interface {
	c.t.Helper()
	revision, err := strconv.ParseInt(lock.GetResourceVersion(), 10, 64)
	if err != nil {
		c.t.Fatal(err)
	}
	return local.New(c.reg, registry.Part(part)).Under(registry.NewFence(api.KindOf(lock), lock.GetNamespace(), lock.GetName(), revision, fell))
}

// AsUser is a client with the identity of a user.
func (c *Cluster) AsUser(u registry.User) client.Interface { return local.New(c.reg, u) }

// Views are the views that parts share in a master.
func (c *Cluster) Views() *informer.Views { return c.views }

// Admin is a client that may do everything.
func (c *Cluster) Admin() client.Interface { return local.New(c.reg, registry.System) }

// Kinds is the table of kinds that the cluster serves.
func (c *Cluster) Kinds() *api.Table { return c.reg.Kinds() }

// AddKind has the cluster serve another kind.
func (c *Cluster) AddKind(kind *api.Kind, s *registry.Strategy) {
	c.t.Helper()
	if err := c.reg.AddKind(c.ctx, kind, s); err != nil {
		c.t.Fatal(err)
	}
}

// Context ends with the test.
func (c *Cluster) Context() context.Context { return c.ctx }

// Create stores an object, in the namespace default if it names none, and returns it as stored.
func Create[T api.Object](c *Cluster, obj T) T {
	c.t.Helper()
	if api.KindOf(obj).Namespaced && obj.GetNamespace() == "" {
		obj.SetNamespace(metav1.NamespaceDefault)
	}
	made, err := c.Admin().Create(c.ctx, obj, client.WriteOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return made.(T)
}

// Change applies a change to an object, and retries on conflicts.
func Change[T api.Object](c *Cluster, kind *api.Kind, name string, change func(T)) {
	c.t.Helper()
	apply(c, kind, name, client.WriteOptions{}, change)
}

// ChangeStatus is Change for the status.
func ChangeStatus[T api.Object](c *Cluster, kind *api.Kind, name string, change func(T)) {
	c.t.Helper()
	apply(c, kind, name, client.WriteOptions{Subresource: api.StatusSubresource}, change)
}

func apply[T api.Object](c *Cluster, kind *api.Kind, name string, how client.WriteOptions, change func(T)) {
	c.t.Helper()
	for {
		key := client.Key{Kind: kind, Name: name}
		if kind.Namespaced {
			key.Namespace = metav1.NamespaceDefault
		}
		old, err := client.Get[T](c.ctx, c.Admin(), key)
		if err != nil {
			c.t.Fatal(err)
		}
		upd := old.DeepCopyObject().(T)
		change(upd)
		_, err = c.Admin().Update(c.ctx, upd, how)
		if err == nil {
			return
		}
		if !conflict(err) {
			c.t.Fatal(err)
		}
	}
}

// Until waits until the objects of a kind are as cond wants them, and returns them.
func Until[T api.Object](c *Cluster, what string, kind *api.Kind, cond func([]T) bool) []T {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	w, err := c.Admin().Watch(ctx, kind, client.WatchOptions{Bookmarks: true})
	if err != nil {
		c.t.Fatal(err)
	}
	defer w.Stop()
	var last []T
	for range w.Events() {
		if last, _, err = client.All[T](ctx, c.Admin(), kind, client.ListOptions{}); err != nil {
			break
		}
		if cond(last) {
			return last
		}
	}
	c.t.Fatalf("%s: it did not come to that; the last of %d objects: %+v", what, len(last), tail(last))
	return nil
}

func tail[T any](list []T) any {
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1]
}
