package kubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/api/podspec"
	"minik8s/internal/client"
)

// fakeAPI is a client.Interface in memory with what the kubelet needs of the API's semantics.
type fakeAPI struct {
	mu       sync.Mutex
	rev      int
	objects  map[string]api.Object
	watchers map[*fakeWatch]struct{}
	// fail, if set, may fail a call: "Get", "Update", "Create", "Patch", "Delete".
	fail func(verb string, key client.Key) error
	// changed is closed and replaced at every change.
	changed chan struct{}
	writes  int
}

type fakeWatch struct {
	kind *api.Kind
	opts client.WatchOptions
	in   chan client.Event // large
	stop func()
}

func (w *fakeWatch) Events() <-chan client.Event { return w.in }
func (w *fakeWatch) Err() error                  { return nil }
func (w *fakeWatch) Stop()                       { w.stop() }

func newFakeAPI() *fakeAPI {
	return &fakeAPI{objects: map[string]api.Object{}, watchers: map[*fakeWatch]struct{}{}, changed: make(chan struct{})}
}

func id(k client.Key) string { return k.String() }

// selected applies the two field selectors that the kubelet uses.
func selected(obj api.Object, opts client.WatchOptions) bool {
	if opts.Fields == nil {
		return true
	}
	if name, ok := opts.Fields.RequiresExactMatch("metadata.name"); ok && obj.GetName() != name {
		return false
	}
	if node, ok := opts.Fields.RequiresExactMatch("spec.nodeName"); ok {
		p, isPod := obj.(*corev1.Pod)
		return isPod && p.Spec.NodeName == node
	}
	return true
}

// put stores obj under a new revision and tells the watchers. It is called with mu held.
func (f *fakeAPI) put(t client.EventType, key client.Key, obj api.Object) api.Object {
	f.rev++
	f.writes++
	obj.SetResourceVersion(strconv.Itoa(f.rev))
	if t == client.Deleted {
		delete(f.objects, id(key))
	} else {
		f.objects[id(key)] = obj
	}
	for w := range f.watchers {
		if w.kind == key.Kind && selected(obj, w.opts) {
			w.in <- client.Event{Type: t, Object: obj, ResourceVersion: obj.GetResourceVersion()}
		}
	}
	close(f.changed)
	f.changed = make(chan struct{})
	return obj
}

func (f *fakeAPI) failing(verb string, key client.Key) error {
	if f.fail == nil {
		return nil
	}
	return f.fail(verb, key)
}

func (f *fakeAPI) Get(_ context.Context, key client.Key) (api.Object, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.failing("Get", key); err != nil {
		return nil, err
	}
	obj := f.objects[id(key)]
	if obj == nil {
		return nil, apierrors.NewNotFound(key.Kind.GR(), key.Name)
	}
	return obj, nil
}

func (f *fakeAPI) List(context.Context, *api.Kind, client.ListOptions) (*client.List, error) {
	return nil, fmt.Errorf("the kubelet does not list")
}

func (f *fakeAPI) Watch(ctx context.Context, kind *api.Kind, opts client.WatchOptions) (client.Watcher, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := &fakeWatch{kind: kind, opts: opts, in: make(chan client.Event, 100000)}
	var once sync.Once
	w.stop = func() {
		once.Do(func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			delete(f.watchers, w)
			close(w.in)
		})
	}
	for _, obj := range f.objects {
		if api.KindOf(obj) == kind && selected(obj, opts) {
			w.in <- client.Event{Type: client.Added, Object: obj, ResourceVersion: obj.GetResourceVersion()}
		}
	}
	w.in <- client.Event{Type: client.Bookmark, InitialEnd: true, ResourceVersion: strconv.Itoa(f.rev)}
	f.watchers[w] = struct{}{}
	context.AfterFunc(ctx, w.stop)
	return w, nil
}

// breakWatches ends every watch.
func (f *fakeAPI) breakWatches() {
	f.mu.Lock()
	var all []*fakeWatch
	for w := range f.watchers {
		all = append(all, w)
	}
	f.mu.Unlock()
	for _, w := range all {
		w.stop()
	}
}

func (f *fakeAPI) Create(_ context.Context, obj api.Object, _ client.WriteOptions) (api.Object, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := client.KeyOf(obj)
	if err := f.failing("Create", key); err != nil {
		return nil, err
	}
	if f.objects[id(key)] != nil {
		return nil, apierrors.NewAlreadyExists(key.Kind.GR(), key.Name)
	}
	obj = obj.DeepCopyObject().(api.Object)
	if obj.GetUID() == "" {
		obj.SetUID(types.UID(fmt.Sprintf("uid-%d", f.rev+1)))
	}
	obj.SetCreationTimestamp(metav1.Now().Rfc3339Copy())
	return f.put(client.Added, key, obj), nil
}

func (f *fakeAPI) Update(_ context.Context, obj api.Object, opts client.WriteOptions) (api.Object, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := client.KeyOf(obj)
	if err := f.failing("Update", key); err != nil {
		return nil, err
	}
	old := f.objects[id(key)]
	if old == nil {
		return nil, apierrors.NewNotFound(key.Kind.GR(), key.Name)
	}
	if rv := obj.GetResourceVersion(); rv != "" && rv != old.GetResourceVersion() {
		return nil, apierrors.NewConflict(key.Kind.GR(), key.Name, fmt.Errorf("stale"))
	}
	obj = obj.DeepCopyObject().(api.Object)
	if opts.Subresource == "status" {
		merged := old.DeepCopyObject().(api.Object)
		switch o := obj.(type) {
		case *corev1.Pod:
			merged.(*corev1.Pod).Status = o.Status
		case *corev1.Node:
			merged.(*corev1.Node).Status = o.Status
		}
		obj = merged
	}
	return f.put(client.Modified, key, throughJSON(obj)), nil
}

// throughJSON is what the store does to an object: times lose their fractions, for one.
func throughJSON(obj api.Object) api.Object {
	data, err := json.Marshal(obj)
	if err != nil {
		panic(err)
	}
	out := api.KindOf(obj).New()
	if err := json.Unmarshal(data, out); err != nil {
		panic(err)
	}
	return out
}

func (f *fakeAPI) Patch(_ context.Context, key client.Key, p client.Patch, _ client.WriteOptions) (api.Object, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.failing("Patch", key); err != nil {
		return nil, err
	}
	obj := f.objects[id(key)]
	if obj == nil {
		return nil, apierrors.NewNotFound(key.Kind.GR(), key.Name)
	}
	obj = obj.DeepCopyObject().(api.Object)
	if err := json.Unmarshal(p.Data, obj); err != nil { // good enough for merging
		return nil, err
	}
	return f.put(client.Modified, key, obj), nil
}

func (f *fakeAPI) Delete(_ context.Context, key client.Key, opts *metav1.DeleteOptions) (api.Object, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.failing("Delete", key); err != nil {
		return nil, err
	}
	obj := f.objects[id(key)]
	if obj == nil {
		return nil, apierrors.NewNotFound(key.Kind.GR(), key.Name)
	}
	if opts != nil && opts.Preconditions != nil && *opts.Preconditions.UID != obj.GetUID() {
		return nil, apierrors.NewConflict(key.Kind.GR(), key.Name, fmt.Errorf("another uid"))
	}
	obj = obj.DeepCopyObject().(api.Object)
	grace := int64(0)
	if pod, ok := obj.(*corev1.Pod); ok {
		grace = 30
		if g := pod.Spec.TerminationGracePeriodSeconds; g != nil {
			grace = *g
		}
		if opts != nil && opts.GracePeriodSeconds != nil {
			grace = *opts.GracePeriodSeconds
		}
		if podspec.Finished(pod.Status.Phase) || pod.Spec.NodeName == "" {
			grace = 0
		}
	}
	if grace == 0 {
		return f.put(client.Deleted, key, obj), nil
	}
	at := metav1.NewTime(time.Now().Add(time.Duration(grace) * time.Second)).Rfc3339Copy()
	obj.SetDeletionTimestamp(&at)
	obj.SetDeletionGracePeriodSeconds(&grace)
	return f.put(client.Modified, key, obj), nil
}

func (f *fakeAPI) DeleteCollection(context.Context, *api.Kind, client.ListOptions, *metav1.DeleteOptions) (*client.List, error) {
	return nil, fmt.Errorf("the kubelet does not delete collections")
}

func (f *fakeAPI) Bind(context.Context, string, string, types.UID, string) error {
	return fmt.Errorf("the kubelet does not bind")
}

func (f *fakeAPI) Token(_ context.Context, _, account string, req *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	return nil, apierrors.NewNotFound(api.ServiceAccounts.GR(), account)
}

// await waits until ok says so of the pod (nil: it is gone); it looks at each change.
func (f *fakeAPI) await(t testing.TB, name, what string, ok func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		f.mu.Lock()
		pod, _ := f.objects[id(podKey(name))].(*corev1.Pod)
		changed := f.changed
		f.mu.Unlock()
		if ok(pod) {
			return pod
		}
		select {
		case <-changed:
		case <-timeout:
			t.Fatalf("pod %s did not become %s: %+v", name, what, statusText(pod))
		}
	}
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
	return client.Key{Kind: api.Pods, Namespace: "default", Name: name}
}

// events lists the reasons of all events on a pod.
func (f *fakeAPI) events(name string) map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[string]string{}
	for _, o := range f.objects {
		if ev, ok := o.(*corev1.Event); ok && ev.InvolvedObject.Name == name {
			out[ev.Reason] = ev.Message
		}
	}
	return out
}

// awaitEvent waits for an event with the given reason.
func (f *fakeAPI) awaitEvent(t testing.TB, name, reason string) string {
	t.Helper()
	return f.awaitSaying(t, name, reason, "")
}

// awaitSaying waits for an event of a reason whose text has some words in it.
func (f *fakeAPI) awaitSaying(t testing.TB, name, reason, words string) string {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		f.mu.Lock()
		changed := f.changed
		f.mu.Unlock()
		if msg, ok := f.events(name)[reason]; ok && strings.Contains(msg, words) {
			return msg
		}
		select {
		case <-changed:
		case <-timeout:
			t.Fatalf("no event %s on %s: %v", reason, name, f.events(name))
		}
	}
}
