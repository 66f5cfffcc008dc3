package kubelet

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"minik8s/internal/api"
	"minik8s/internal/apiserver"
	"minik8s/internal/certs"
	"minik8s/internal/client"
	"minik8s/internal/client/local"
	"minik8s/internal/client/remote"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
)

// patience bounds every wait: it is reached only when something is broken.
const patience = 30 * time.Second

// testAPI is a real registry over a store in memory. Its own calls are an administrator's; node is the client of
// the kubelet under test, which may do what a kubelet may.
type testAPI struct {
	client.Interface
	reg  *registry.Registry
	node *nodeClient
}

// ofMaster makes the kubelet that of a machine that is a master, or of a worker. It is for kubelets that do not run.
func (a *testAPI) ofMaster(yes bool) {
	user := registry.NodeUser("node1")
	if yes {
		user = registry.MasterNode("node1", "")
	}
	a.node.Interface = local.New(a.reg, user)
}

func newTestAPI(t testing.TB) *testAPI {
	reg := registrytest.New(t)
	node := client.Interface(local.New(reg, registry.NodeUser("node1")))
	if overTheWire {
		node = dialled(t, reg)
	}
	return &testAPI{Interface: local.New(reg, registry.System), reg: reg, node: &nodeClient{
		Interface: node, watches: map[*nodeWatch]struct{}{}}}
}

// dialled is the client of a worker on another machine: over TLS, with the node's certificate.
func dialled(t testing.TB, reg *registry.Registry) client.Interface {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	ca, err := certs.OpenAuthority(dir, "test-ca")
	must(err)
	server, err := ca.Server(dir, "apiserver", []string{"127.0.0.1"})
	must(err)
	cert, err := server.TLS()
	must(err)
	user := registry.NodeUser("node1")
	own, err := ca.Client(dir, "node", user.Name, user.Groups...)
	must(err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	srv := apiserver.New(apiserver.Config{Registry: reg, Listener: l, Cert: certs.Use(cert), ClientCA: ca.Pool(), Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		if err := srv.Run(ctx, func() { close(ready) }); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	<-ready
	c, err := remote.New(remote.Config{Server: "https://" + l.Addr().String(), CA: ca.Cert, Cert: own.Cert, Key: own.Key})
	must(err)
	t.Cleanup(c.Close)
	return c
}

// nodeClient can fail writes and break watches, and knows which watches are open.
type nodeClient struct {
	client.Interface

	mu sync.Mutex
	// fail, if set, may fail an update.
	fail    func(client.Key) error
	watches map[*nodeWatch]struct{}
}

type nodeWatch struct {
	client.Watcher
	c    *nodeClient
	kind *api.Kind
}

// Stop implements client.Watcher.
func (w *nodeWatch) Stop() {
	w.c.mu.Lock()
	delete(w.c.watches, w)
	w.c.mu.Unlock()
	w.Watcher.Stop()
}

// Watch implements client.Interface.
func (c *nodeClient) Watch(ctx context.Context, kind *api.Kind, opts client.WatchOptions) (client.Watcher, error) {
	in, err := c.Interface.Watch(ctx, kind, opts)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &nodeWatch{in, c, kind}
	c.watches[w] = struct{}{}
	return w, nil
}

// Update implements client.Interface.
func (c *nodeClient) Update(ctx context.Context, obj api.Object, opts client.WriteOptions) (api.Object, error) {
	c.mu.Lock()
	fail := c.fail
	c.mu.Unlock()
	if fail != nil {
		if err := fail(client.KeyOf(obj)); err != nil {
			return nil, err
		}
	}
	return c.Interface.Update(ctx, obj, opts)
}

// open counts the kubelet's watches of a kind.
func (c *nodeClient) open(kind *api.Kind) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for w := range c.watches {
		if w.kind == kind {
			n++
		}
	}
	return n
}

// breakWatches ends every watch of the kubelet.
func (c *nodeClient) breakWatches() {
	c.mu.Lock()
	var all []*nodeWatch
	for w := range c.watches {
		all = append(all, w)
	}
	c.mu.Unlock()
	for _, w := range all {
		w.Watcher.Stop()
	}
}

// pod is a pod as the API has it; nil if there is none.
func (f *testAPI) pod(t testing.TB, name string) *corev1.Pod {
	t.Helper()
	pod, err := client.Get[*corev1.Pod](context.WithoutCancel(t.Context()), f, podKey(name))
	if err != nil {
		return nil
	}
	return pod
}

// await waits until ok is true for the pod (nil: deleted), after each change.
func (f *testAPI) await(t testing.TB, name, what string, ok func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	return await(t, f, podKey(name), what, ok)
}

func (f *testAPI) awaitNode(t testing.TB, what string, ok func(*corev1.Node) bool) *corev1.Node {
	t.Helper()
	return await(t, f, nodeKey, what, func(n *corev1.Node) bool { return n != nil && ok(n) })
}

// await waits until an object is as ok wants it (nil: there is none).
func await[T api.Object](t testing.TB, c client.Interface, key client.Key, what string, ok func(T) bool) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	w, err := c.Watch(ctx, key.Kind, client.WatchOptions{Namespace: key.Namespace, Bookmarks: true,
		Fields: fields.OneTermEqualSelector("metadata.name", key.Name)})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	var none, last T
	exists := false
	for ev := range w.Events() {
		switch {
		case ev.Type == client.Bookmark && (!ev.InitialEnd || exists):
			continue
		case ev.Type == client.Bookmark, ev.Type == client.Deleted:
			last = none
		default:
			exists, last = true, ev.Object.(T)
		}
		if ok(last) {
			return last
		}
	}
	data, _ := json.MarshalIndent(last, "", " ")
	t.Fatalf("%s did not become %s: %s", key, what, data)
	return none
}

func statusText(pod *corev1.Pod) string {
	if pod == nil {
		return "gone"
	}
	data, err := json.MarshalIndent(pod.Status, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func podKey(name string) client.Key {
	return client.Key{Kind: api.Pods, Namespace: metav1.NamespaceDefault, Name: name}
}

// events lists the reasons of all events on a pod.
func (f *testAPI) events(t testing.TB, name string) map[string]string {
	t.Helper()
	all, _, err := client.All[*corev1.Event](context.WithoutCancel(t.Context()), f, api.Events, client.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, ev := range all {
		if ev.InvolvedObject.Name == name {
			out[ev.Reason] = ev.Message
		}
	}
	return out
}

// awaitEvent waits for an event with the given reason.
func (f *testAPI) awaitEvent(t testing.TB, name, reason string) string {
	t.Helper()
	return f.awaitSaying(t, name, reason, "")
}

// awaitSaying waits for an event with the reason and these words in its message.
func (f *testAPI) awaitSaying(t testing.TB, name, reason, words string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	w, err := f.Watch(ctx, api.Events, client.WatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for change := range w.Events() {
		ev, ok := change.Object.(*corev1.Event)
		if ok && change.Type != client.Deleted && ev.InvolvedObject.Name == name && ev.Reason == reason && strings.Contains(ev.Message, words) {
			return ev.Message
		}
	}
	t.Fatalf("no event %s on %s: %v", reason, name, f.events(t, name))
	return ""
}
