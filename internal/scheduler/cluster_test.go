package scheduler

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/local"
	"minik8s/internal/events"
	"minik8s/internal/registry"
	"minik8s/internal/registry/strategy"
	"minik8s/internal/store/memory"
)

// testCluster is a registry in memory with a scheduler that may only do what the real one may.
type testCluster struct {
	t     *testing.T
	admin client.Interface
	used  sync.Map     // of Usage, by node
	asked atomic.Int32 // for it
	faults
}

// faults wraps the scheduler's client: bind, if it is set, decides what becomes of a binding.
type faults struct {
	client.Interface
	mu    sync.Mutex
	bind  func(call func() error) error
	binds map[types.UID]int // bindings that the API acknowledged
}

func (f *faults) Bind(ctx context.Context, namespace, pod string, uid types.UID, node string) error {
	call := func() error {
		err := f.Interface.Bind(ctx, namespace, pod, uid, node)
		if err == nil {
			f.mu.Lock()
			f.binds[uid]++
			f.mu.Unlock()
		}
		return err
	}
	if f.bind != nil {
		return f.bind(call)
	}
	return call()
}

// start runs a cluster; faulty may be nil.
func start(t *testing.T, faulty func(call func() error) error) *testCluster {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	log := slog.New(slog.DiscardHandler)
	reg := registry.New(memory.New(), strategy.All(strategy.Settings{}), log)
	var wg sync.WaitGroup
	run := func(f func()) {
		wg.Add(1)
		go func() { defer wg.Done(); f() }()
	}
	t.Cleanup(func() { cancel(); wg.Wait() })
	loaded, ready := make(chan struct{}), make(chan struct{})
	var once sync.Once
	run(func() { reg.Run(ctx, func() { once.Do(func() { close(loaded) }) }) }) //nolint:errcheck // it ends with ctx
	<-loaded
	if err := reg.Ensure(ctx, api.SystemObjects()...); err != nil {
		t.Fatal(err)
	}
	c := &testCluster{t: t, admin: local.New(reg, registry.System)}
	c.Interface, c.bind, c.binds = local.New(reg, registry.Part("scheduler")), faulty, map[types.UID]int{}
	rec := events.New(c.Interface, Name, "", log)
	run(func() { rec.Run(ctx) })
	run(func() { New(&c.faults, nil, rec, Config{Usage: c.usage}, log).Run(ctx, func() { close(ready) }) }) //nolint:errcheck // it ends with ctx
	<-ready
	return c
}

// usage is what the nodes are said to use, and counts how often it was asked for.
func (c *testCluster) usage(_ context.Context, nodes []string) map[string]Usage {
	c.asked.Add(1)
	out := map[string]Usage{}
	for _, name := range nodes {
		if u, ok := c.used.Load(name); ok {
			out[name] = u.(Usage)
		}
	}
	return out
}

func (c *testCluster) create(obj api.Object) api.Object {
	c.t.Helper()
	out, err := c.admin.Create(c.t.Context(), obj, client.WriteOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

// node makes a Ready node, or gives one another size.
func (c *testCluster) node(name, cpu string) {
	c.t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
	key := client.Key{Kind: api.Nodes, Name: name}
	if have, err := client.Get[*corev1.Node](c.t.Context(), c.admin, key); err == nil {
		n = have.DeepCopy()
	} else {
		n = c.create(n).DeepCopyObject().(*corev1.Node)
	}
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu),
		corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("110")}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if _, err := c.admin.Update(c.t.Context(), n, client.WriteOptions{Subresource: "status"}); err != nil {
		c.t.Fatal(err)
	}
}

// podOf is a pod that asks for cpu.
func podOf(name, cpu string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "demo:1", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}},
	}
}

func (c *testCluster) pod(name string) *corev1.Pod {
	pod, err := client.Get[*corev1.Pod](c.t.Context(), c.admin, client.Key{Kind: api.Pods, Namespace: "default", Name: name})
	if err != nil {
		c.t.Fatal(err)
	}
	return pod
}

func (c *testCluster) delete(name string) {
	zero := int64(0)
	if _, err := c.admin.Delete(c.t.Context(), client.Key{Kind: api.Pods, Namespace: "default", Name: name},
		&metav1.DeleteOptions{GracePeriodSeconds: &zero}); err != nil {
		c.t.Fatal(err)
	}
}

// eventually waits until something is so; what it says in the end is why it is not.
func (c *testCluster) eventually(within time.Duration, ok func() string) {
	c.t.Helper()
	deadline := time.Now().Add(within)
	for {
		why := ok()
		if why == "" {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatal(why)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (c *testCluster) bound(within time.Duration, names ...string) {
	c.t.Helper()
	c.eventually(within, func() string {
		for _, name := range names {
			if c.pod(name).Spec.NodeName == "" {
				return fmt.Sprintf("pod %s has no node: %+v", name, c.pod(name).Status.Conditions)
			}
		}
		return ""
	})
}

// why is what the pod's condition says.
func (c *testCluster) why(name string) string {
	for _, cond := range c.pod(name).Status.Conditions {
		if cond.Type == corev1.PodScheduled && cond.Status == corev1.ConditionFalse {
			return cond.Reason + ": " + cond.Message
		}
	}
	return ""
}

func (c *testCluster) eventsOf(reason string) (out []*corev1.Event) {
	all, _, err := client.All[*corev1.Event](c.t.Context(), c.admin, api.Events, client.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, e := range all {
		if e.Reason == reason {
			out = append(out, e)
		}
	}
	return out
}
