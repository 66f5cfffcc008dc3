// Package clienttest is the contract of client.Interface, as tests that every implementation runs.
package clienttest

import (
	"context"
	"fmt"
	"math/rand"
	"slices"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/client"
)

// Run checks the client that open makes. Each test gets a cluster of its own, with the namespace
// default.
func Run(t *testing.T, open func(t *testing.T) client.Interface) {
	for name, test := range map[string]func(*testing.T, context.Context, client.Interface){
		"create, get, update, delete":       crud,
		"a stale update is a conflict":      stale,
		"many writers lose nothing":         counter,
		"generateName":                      generate,
		"refusals name every mistake":       refusals,
		"patches of three kinds":            patches,
		"a manifest is applied":             applying,
		"lists are applied item by item":    applyingLists,
		"status apart from spec":            status,
		"list selects and pages":            lists,
		"watch follows a list exactly":      watches,
		"watch through a selector":          selected,
		"initial events, then a bookmark":   initial,
		"peers are a part of nodes":         peers,
		"pod addresses are a part of pods":  podAddresses,
		"delete waits for finalizers":       finalizers,
		"delete checks preconditions":       preconditions,
		"deletecollection":                  collection,
		"bind gives a pod one node":         binding,
		"scale reads and sets replicas":     scaling,
		"a service account gets a token":    token,
		"dry run changes nothing":           dryRun,
		"what a caller keeps stays its own": ownership,
		"managers, answers, wrong calls":    edges,
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			test(t, ctx, open(t))
		})
	}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func want(t *testing.T, is func(error) bool, err error) {
	t.Helper()
	if !is(err) {
		t.Fatalf("got %v", err)
	}
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: data}
}

func cmKey(name string) client.Key {
	return client.Key{Kind: api.ConfigMaps, Namespace: "default", Name: name}
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "busybox"}}}}
}

func podKey(name string) client.Key {
	return client.Key{Kind: api.Pods, Namespace: "default", Name: name}
}

func crud(t *testing.T, ctx context.Context, c client.Interface) {
	_, err := c.Get(ctx, cmKey("a"))
	want(t, apierrors.IsNotFound, err)
	made := must[api.Object](t)(c.Create(ctx, configMap("a", map[string]string{"k": "1"}), client.WriteOptions{})).(*corev1.ConfigMap)
	if made.UID == "" || made.ResourceVersion == "" || made.CreationTimestamp.IsZero() || made.Kind != "ConfigMap" {
		t.Fatalf("created %+v", made)
	}
	_, err = c.Create(ctx, configMap("a", nil), client.WriteOptions{})
	want(t, apierrors.IsAlreadyExists, err)
	got := must[*corev1.ConfigMap](t)(client.Get[*corev1.ConfigMap](ctx, c, cmKey("a")))
	if got.ResourceVersion != made.ResourceVersion || got.Data["k"] != "1" {
		t.Fatalf("got %+v", got)
	}
	upd := got.DeepCopy()
	upd.Data["k"] = "2"
	now := must[api.Object](t)(c.Update(ctx, upd, client.WriteOptions{}))
	if now.GetResourceVersion() == made.ResourceVersion || now.GetUID() != made.UID {
		t.Fatalf("updated %+v", now)
	}
	same := must[api.Object](t)(c.Update(ctx, now.DeepCopyObject().(api.Object), client.WriteOptions{}))
	if same.GetResourceVersion() != now.GetResourceVersion() {
		t.Fatal("an update that changes nothing made a new revision")
	}
	must[api.Object](t)(c.Delete(ctx, cmKey("a"), nil))
	_, err = c.Get(ctx, cmKey("a"))
	want(t, apierrors.IsNotFound, err)
	_, err = c.Delete(ctx, cmKey("a"), nil)
	want(t, apierrors.IsNotFound, err)
	_, err = c.Update(ctx, upd, client.WriteOptions{})
	want(t, apierrors.IsNotFound, err)
}

func stale(t *testing.T, ctx context.Context, c client.Interface) {
	first := must[api.Object](t)(c.Create(ctx, configMap("a", nil), client.WriteOptions{})).(*corev1.ConfigMap)
	one, two := first.DeepCopy(), first.DeepCopy()
	one.Data, two.Data = map[string]string{"by": "one"}, map[string]string{"by": "two"}
	must[api.Object](t)(c.Update(ctx, one, client.WriteOptions{}))
	_, err := c.Update(ctx, two, client.WriteOptions{})
	want(t, apierrors.IsConflict, err)
	two.ResourceVersion = "" // without one it overwrites
	must[api.Object](t)(c.Update(ctx, two, client.WriteOptions{}))
	again := first.DeepCopy()
	again.UID, again.ResourceVersion = "somebody-else", ""
	_, err = c.Update(ctx, again, client.WriteOptions{})
	want(t, apierrors.IsConflict, err)
}

// counter: every one of many concurrent read-modify-writes counts.
func counter(t *testing.T, ctx context.Context, c client.Interface) {
	must[api.Object](t)(c.Create(ctx, configMap("n", map[string]string{"n": "0"}), client.WriteOptions{}))
	var wg sync.WaitGroup
	const writers, each = 8, 10
	for range writers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for done := 0; done < each; {
				cm, err := client.Get[*corev1.ConfigMap](ctx, c, cmKey("n"))
				if err != nil {
					t.Error(err)
					return
				}
				upd := cm.DeepCopy()
				var n int
				fmt.Sscan(upd.Data["n"], &n) //nolint:errcheck // the test fails at the end
				upd.Data["n"] = fmt.Sprint(n + 1)
				if _, err = c.Update(ctx, upd, client.WriteOptions{}); err == nil {
					done++
				} else if !apierrors.IsConflict(err) {
					t.Error(err)
					return
				}
			}
		}()
	}
	wg.Wait()
	if cm := must[*corev1.ConfigMap](t)(client.Get[*corev1.ConfigMap](ctx, c, cmKey("n"))); cm.Data["n"] != fmt.Sprint(writers*each) {
		t.Fatalf("counted %s of %d", cm.Data["n"], writers*each)
	}
}

func generate(t *testing.T, ctx context.Context, c client.Interface) {
	seen := map[string]bool{}
	for range 20 {
		cm := configMap("", nil)
		cm.GenerateName = "web-"
		name := must[api.Object](t)(c.Create(ctx, cm, client.WriteOptions{})).GetName()
		if len(name) != len("web-")+5 || seen[name] {
			t.Fatalf("generated %q", name)
		}
		seen[name] = true
	}
}

func refusals(t *testing.T, ctx context.Context, c client.Interface) {
	p := pod("Bad_Name")
	p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "c"})
	p.Spec.RestartPolicy = "Sometimes"
	_, err := c.Create(ctx, p, client.WriteOptions{})
	want(t, apierrors.IsInvalid, err)
	st := err.(apierrors.APIStatus).Status()
	paths := map[string]bool{}
	for _, cause := range st.Details.Causes {
		paths[cause.Field] = true
	}
	for _, f := range []string{"metadata.name", "spec.containers[1].name", "spec.containers[1].image", "spec.restartPolicy"} {
		if !paths[f] {
			t.Errorf("nothing is said about %s in: %s", f, st.Message)
		}
	}
	_, err = c.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "nowhere", Name: "a"}}, client.WriteOptions{})
	want(t, apierrors.IsNotFound, err)
}

func patches(t *testing.T, ctx context.Context, c client.Interface) {
	must[api.Object](t)(c.Create(ctx, configMap("a", map[string]string{"x": "1", "y": "2"}), client.WriteOptions{}))
	do := func(pt types.PatchType, data string) (api.Object, error) {
		return c.Patch(ctx, cmKey("a"), client.Patch{Type: pt, Data: []byte(data)}, client.WriteOptions{})
	}
	must[api.Object](t)(do(types.MergePatchType, `{"data":{"x":null,"z":"3"}}`))
	must[api.Object](t)(do(types.JSONPatchType, `[{"op":"replace","path":"/data/y","value":"two"}]`))
	got := must[api.Object](t)(do(types.StrategicMergePatchType, `{"metadata":{"labels":{"l":"v"}}}`)).(*corev1.ConfigMap)
	if fmt.Sprint(got.Data) != "map[y:two z:3]" || got.Labels["l"] != "v" {
		t.Fatalf("patched to %v %v", got.Data, got.Labels)
	}
	_, err := do(types.MergePatchType, `{"metadata":{"resourceVersion":"1"},"data":{"x":"9"}}`)
	want(t, apierrors.IsConflict, err)
	if _, err = do(types.JSONPatchType, `[{"op":"test","path":"/data/y","value":"no"}]`); err == nil {
		t.Fatal("a failed test of a JSON patch was applied")
	}
	_, err = do(types.MergePatchType, `{"metadata":{"name":"b"}}`)
	want(t, apierrors.IsBadRequest, err)
}

func status(t *testing.T, ctx context.Context, c client.Interface) {
	p := must[api.Object](t)(c.Create(ctx, pod("p"), client.WriteOptions{})).(*corev1.Pod)
	if p.Status.Phase != corev1.PodPending || p.Generation != 1 {
		t.Fatalf("new pod: phase %q, generation %d", p.Status.Phase, p.Generation)
	}
	upd := p.DeepCopy()
	upd.Status.Phase, upd.Spec.Containers[0].Image = corev1.PodRunning, "other"
	p = must[api.Object](t)(c.Update(ctx, upd, client.WriteOptions{Subresource: "status"})).(*corev1.Pod)
	if p.Status.Phase != corev1.PodRunning || p.Spec.Containers[0].Image != "busybox" || p.Generation != 1 {
		t.Fatalf("after a status update: %q %q", p.Status.Phase, p.Spec.Containers[0].Image)
	}
	upd = p.DeepCopy()
	upd.Status.Phase, upd.Spec.Containers[0].Image = corev1.PodFailed, "other"
	p = must[api.Object](t)(c.Update(ctx, upd, client.WriteOptions{})).(*corev1.Pod)
	if p.Status.Phase != corev1.PodRunning || p.Spec.Containers[0].Image != "other" || p.Generation != 2 {
		t.Fatalf("after a spec update: %q %q generation %d", p.Status.Phase, p.Spec.Containers[0].Image, p.Generation)
	}
}

func lists(t *testing.T, ctx context.Context, c client.Interface) {
	for i := range 25 {
		cm := configMap(fmt.Sprintf("p-%02d", i), nil)
		cm.Labels = map[string]string{"parity": []string{"even", "odd"}[i%2]}
		must[api.Object](t)(c.Create(ctx, cm, client.WriteOptions{}))
	}
	parity, err := labels.Parse("parity")
	if err != nil {
		t.Fatal(err)
	}
	first := must[*client.List](t)(c.List(ctx, api.ConfigMaps, client.ListOptions{Namespace: "default", Labels: parity, Limit: 10}))
	must[api.Object](t)(c.Delete(ctx, cmKey("p-15"), nil)) // the pages are of one moment
	all := first.Items
	for page := first; page.Continue != ""; {
		page = must[*client.List](t)(c.List(ctx, api.ConfigMaps, client.ListOptions{Namespace: "default", Labels: parity, Limit: 10, Continue: page.Continue}))
		if page.ResourceVersion != first.ResourceVersion {
			t.Fatalf("a page at %s, the first at %s", page.ResourceVersion, first.ResourceVersion)
		}
		all = append(all, page.Items...)
	}
	for i, obj := range all {
		if obj.GetName() != fmt.Sprintf("p-%02d", i) {
			t.Fatalf("item %d is %s", i, obj.GetName())
		}
	}
	odd := must[*client.List](t)(c.List(ctx, api.ConfigMaps, client.ListOptions{Labels: labels.SelectorFromSet(labels.Set{"parity": "odd"})}))
	one := must[*client.List](t)(c.List(ctx, api.ConfigMaps, client.ListOptions{Fields: fields.OneTermEqualSelector("metadata.name", "p-03")}))
	if len(all) != 25 || len(odd.Items) != 11 || len(one.Items) != 1 {
		t.Fatalf("listed %d, %d and %d", len(all), len(odd.Items), len(one.Items))
	}
	_, err = c.List(ctx, api.ConfigMaps, client.ListOptions{Fields: fields.OneTermEqualSelector("spec.nonsense", "x")})
	want(t, apierrors.IsBadRequest, err)
}

// next reads n events that are no bookmarks.
func next(t *testing.T, w client.Watcher, n int) []client.Event {
	t.Helper()
	var got []client.Event
	late := time.After(20 * time.Second)
	for len(got) < n {
		select {
		case e, ok := <-w.Events():
			if !ok {
				t.Fatalf("the watch ended after %d of %d events: %v", len(got), n, w.Err())
			}
			if e.Type != client.Bookmark {
				got = append(got, e)
			}
		case <-late:
			t.Fatalf("%d of %d events came", len(got), n)
		}
	}
	return got
}

// watches applies a random sequence to a list, by its watch, and compares with the list at the end.
func watches(t *testing.T, ctx context.Context, c client.Interface) {
	must[api.Object](t)(c.Create(ctx, configMap("before", nil), client.WriteOptions{}))
	list := must[*client.List](t)(c.List(ctx, api.ConfigMaps, client.ListOptions{Namespace: "default"}))
	view := map[string]string{}
	for _, obj := range list.Items {
		view[obj.GetName()] = obj.GetResourceVersion()
	}
	w := must[client.Watcher](t)(c.Watch(ctx, api.ConfigMaps, client.WatchOptions{Namespace: "default", ResourceVersion: list.ResourceVersion}))
	defer w.Stop()
	rng := rand.New(rand.NewSource(7))
	changes := 0
	live := map[string]bool{}
	for i := range 200 {
		name := fmt.Sprintf("n-%d", rng.Intn(10))
		switch {
		case !live[name]:
			must[api.Object](t)(c.Create(ctx, configMap(name, nil), client.WriteOptions{}))
			live[name] = true
		case rng.Intn(3) == 0:
			must[api.Object](t)(c.Delete(ctx, cmKey(name), nil))
			delete(live, name)
		default:
			must[api.Object](t)(c.Update(ctx, configMap(name, map[string]string{"i": fmt.Sprint(i)}), client.WriteOptions{}))
		}
		changes++
	}
	for _, e := range next(t, w, changes) {
		_, had := view[e.Object.GetName()]
		switch e.Type {
		case client.Added:
			if had {
				t.Fatalf("%s was added twice", e.Object.GetName())
			}
		default:
			if !had {
				t.Fatalf("%s of %s, which was not there", e.Type, e.Object.GetName())
			}
		}
		if e.Object.GetResourceVersion() != e.ResourceVersion {
			t.Fatalf("event at %s carries an object at %s", e.ResourceVersion, e.Object.GetResourceVersion())
		}
		if view[e.Object.GetName()] = e.ResourceVersion; e.Type == client.Deleted {
			delete(view, e.Object.GetName())
		}
	}
	end := must[*client.List](t)(c.List(ctx, api.ConfigMaps, client.ListOptions{Namespace: "default"}))
	for _, obj := range end.Items {
		if view[obj.GetName()] != obj.GetResourceVersion() {
			t.Errorf("%s: by watch at %s, by list at %s", obj.GetName(), view[obj.GetName()], obj.GetResourceVersion())
		}
	}
	if len(end.Items) != len(view) {
		t.Errorf("by watch %d, by list %d", len(view), len(end.Items))
	}
}

func selected(t *testing.T, ctx context.Context, c client.Interface) {
	list := must[*client.List](t)(c.List(ctx, api.ConfigMaps, client.ListOptions{}))
	w := must[client.Watcher](t)(c.Watch(ctx, api.ConfigMaps, client.WatchOptions{Namespace: "default", ResourceVersion: list.ResourceVersion,
		Labels: labels.SelectorFromSet(labels.Set{"on": "yes"})}))
	defer w.Stop()
	cm := configMap("a", nil)
	set := func(v string) {
		cm.Labels = map[string]string{"on": v}
		must[api.Object](t)(c.Update(ctx, cm, client.WriteOptions{}))
	}
	must[api.Object](t)(c.Create(ctx, cm, client.WriteOptions{}))
	set("yes")
	cm.Data = map[string]string{"k": "v"}
	set("yes")
	set("no")
	set("yes")
	must[api.Object](t)(c.Delete(ctx, cmKey("a"), nil))
	var got []client.EventType
	for _, e := range next(t, w, 5) {
		got = append(got, e.Type)
	}
	if fmt.Sprint(got) != "[ADDED MODIFIED DELETED ADDED DELETED]" {
		t.Fatalf("saw %v", got)
	}
}

func initial(t *testing.T, ctx context.Context, c client.Interface) {
	for _, n := range []string{"a", "b"} {
		must[api.Object](t)(c.Create(ctx, configMap(n, nil), client.WriteOptions{}))
	}
	w := must[client.Watcher](t)(c.Watch(ctx, api.ConfigMaps, client.WatchOptions{Namespace: "default", Bookmarks: true}))
	defer w.Stop()
	var got []string
	for e := range w.Events() {
		if e.Type == client.Bookmark {
			if !e.InitialEnd || e.ResourceVersion == "" {
				t.Fatalf("bookmark %+v", e)
			}
			break
		}
		got = append(got, string(e.Type)+" "+e.Object.GetName())
	}
	if fmt.Sprint(got) != "[ADDED a ADDED b]" {
		t.Fatalf("saw %v", got)
	}
	must[api.Object](t)(c.Create(ctx, configMap("c", nil), client.WriteOptions{}))
	if e := next(t, w, 1)[0]; e.Object.GetName() != "c" {
		t.Fatalf("then %+v", e)
	}
}

// peers reads Nodes in the form of Peers. A watch of them says nothing of what they do not show.
func peers(t *testing.T, ctx context.Context, c client.Interface) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{api.ControlPlane: ""},
		Annotations: map[string]string{api.APIAddressAnnotation: "10.0.0.1:6443"}}}
	must[api.Object](t)(c.Create(ctx, node, client.WriteOptions{}))
	key := client.Key{Kind: api.Nodes, Name: "n"}
	patch := func(body string, sub string) {
		t.Helper()
		must[api.Object](t)(c.Patch(ctx, key, client.Patch{Type: types.MergePatchType, Data: []byte(body)}, client.WriteOptions{Subresource: sub}))
	}
	list := must[*client.List](t)(c.List(ctx, api.Peers, client.ListOptions{}))
	if len(list.Items) != 1 || list.Items[0].(*minik8s.Peer).Spec.API != "10.0.0.1:6443" {
		t.Fatalf("%+v", list.Items)
	}
	w := must[client.Watcher](t)(c.Watch(ctx, api.Peers, client.WatchOptions{ResourceVersion: list.ResourceVersion}))
	defer w.Stop()
	patch(`{"metadata":{"labels":{"zone":"z"}}}`, "")
	patch(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, "status")
	patch(`{"status":{"addresses":[{"type":"Hostname","address":"n"},{"type":"InternalIP","address":"10.0.0.1"}]}}`, "status")
	patch(`{"spec":{"unschedulable":true}}`, "")
	must[api.Object](t)(c.Delete(ctx, key, nil))
	got := next(t, w, 2)
	if p, ok := got[0].Object.(*minik8s.Peer); !ok || got[0].Type != client.Modified || !slices.Equal(p.Spec.Addresses, []string{"10.0.0.1"}) || p.Name != "n" || p.UID == "" {
		t.Errorf("the first event: %s %+v", got[0].Type, got[0].Object)
	}
	if p, ok := got[1].Object.(*minik8s.Peer); !ok || got[1].Type != client.Deleted || p.Name != "n" {
		t.Errorf("the second event: %s %+v", got[1].Type, got[1].Object)
	}
	must[api.Object](t)(c.Create(ctx, node, client.WriteOptions{}))
	_, err := c.Delete(ctx, client.Key{Kind: api.Peers, Name: "n"}, nil)
	want(t, apierrors.IsMethodNotSupported, err)
	must[api.Object](t)(c.Get(ctx, client.Key{Kind: api.Peers, Name: "n"}))
}

// podAddresses reads Pods in the form of PodAddresses: with an address while one is the pod's own.
func podAddresses(t *testing.T, ctx context.Context, c client.Interface) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c", Image: "i", Ports: []corev1.ContainerPort{
			{Name: "http", ContainerPort: 80, Protocol: corev1.ProtocolTCP}, {ContainerPort: 81, Protocol: corev1.ProtocolTCP}}}}}}
	must[api.Object](t)(c.Create(ctx, pod, client.WriteOptions{}))
	key := client.Key{Kind: api.Pods, Namespace: "default", Name: "p"}
	patch := func(body, sub string) {
		t.Helper()
		must[api.Object](t)(c.Patch(ctx, key, client.Patch{Type: types.MergePatchType, Data: []byte(body)}, client.WriteOptions{Subresource: sub}))
	}
	list := must[*client.List](t)(c.List(ctx, api.PodAddresses, client.ListOptions{Labels: labels.SelectorFromSet(labels.Set{"app": "web"})}))
	if len(list.Items) != 1 {
		t.Fatalf("%+v", list.Items)
	}
	w := must[client.Watcher](t)(c.Watch(ctx, api.PodAddresses, client.WatchOptions{ResourceVersion: list.ResourceVersion}))
	defer w.Stop()
	patch(`{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`, "status")
	patch(`{"metadata":{"annotations":{"a":"b"}}}`, "")
	patch(`{"status":{"phase":"Running","podIP":"10.1.1.1","podIPs":[{"ip":"10.1.1.1"}]}}`, "status")
	patch(`{"metadata":{"labels":{"app":"db"}}}`, "")
	patch(`{"status":{"phase":"Succeeded"}}`, "status")
	var got []string
	for _, e := range next(t, w, 3) {
		p := e.Object.(*minik8s.PodAddress)
		got = append(got, fmt.Sprint(e.Type, p.Labels, p.Spec))
	}
	want := []string{"MODIFIEDmap[app:web] {n [10.1.1.1] [{http 80 TCP}]}", "MODIFIEDmap[app:db] {n [10.1.1.1] [{http 80 TCP}]}", "MODIFIEDmap[app:db] {n [] []}"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	host := pod.DeepCopy()
	host.Name, host.Spec.HostNetwork, host.Spec.Containers[0].Ports = "host", true, nil
	must[api.Object](t)(c.Create(ctx, host, client.WriteOptions{}))
	key.Name = "host"
	patch(`{"status":{"phase":"Running","podIP":"192.0.2.1","podIPs":[{"ip":"192.0.2.1"}]}}`, "status")
	obj := must[api.Object](t)(c.Get(ctx, client.Key{Kind: api.PodAddresses, Namespace: "default", Name: "host"}))
	if p := obj.(*minik8s.PodAddress); len(p.Spec.Addresses) > 0 {
		t.Errorf("a pod with its node's network: %+v", p.Spec)
	}
}

func finalizers(t *testing.T, ctx context.Context, c client.Interface) {
	cm := configMap("a", nil)
	cm.Finalizers = []string{"example.com/hold"}
	must[api.Object](t)(c.Create(ctx, cm, client.WriteOptions{}))
	held := must[api.Object](t)(c.Delete(ctx, cmKey("a"), nil))
	if held.GetDeletionTimestamp() == nil {
		t.Fatal("a held object has no deletionTimestamp")
	}
	got := must[api.Object](t)(c.Get(ctx, cmKey("a"))).DeepCopyObject().(api.Object)
	got.SetFinalizers(nil)
	must[api.Object](t)(c.Update(ctx, got, client.WriteOptions{}))
	_, err := c.Get(ctx, cmKey("a"))
	want(t, apierrors.IsNotFound, err)
}

func preconditions(t *testing.T, ctx context.Context, c client.Interface) {
	obj := must[api.Object](t)(c.Create(ctx, configMap("a", nil), client.WriteOptions{}))
	_, err := c.Delete(ctx, cmKey("a"), &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("another")})
	want(t, apierrors.IsConflict, err)
	must[api.Object](t)(c.Delete(ctx, cmKey("a"), &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(obj.GetUID()))}))
}

func collection(t *testing.T, ctx context.Context, c client.Interface) {
	for i := range 6 {
		cm := configMap(fmt.Sprintf("d-%d", i), nil)
		cm.Labels = map[string]string{"go": fmt.Sprint(i < 4)}
		must[api.Object](t)(c.Create(ctx, cm, client.WriteOptions{}))
	}
	going := labels.SelectorFromSet(labels.Set{"go": "true"})
	gone := must[*client.List](t)(c.DeleteCollection(ctx, api.ConfigMaps, client.ListOptions{Namespace: "default", Labels: going}, nil))
	left := must[*client.List](t)(c.List(ctx, api.ConfigMaps, client.ListOptions{Namespace: "default"}))
	if len(gone.Items) != 4 || len(left.Items) != 2 {
		t.Fatalf("deleted %d, left %d", len(gone.Items), len(left.Items))
	}
}

func token(t *testing.T, ctx context.Context, c client.Interface) {
	must[api.Object](t)(c.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "robot"}}, client.WriteOptions{}))
	got := must[*authenticationv1.TokenRequest](t)(c.Token(ctx, "default", "robot", &authenticationv1.TokenRequest{}))
	if left := time.Until(got.Status.ExpirationTimestamp.Time); got.Status.Token == "" || left <= 0 || left > time.Hour {
		t.Fatalf("a token %q for %s", got.Status.Token, left)
	}
	_, err := c.Token(ctx, "default", "nobody", &authenticationv1.TokenRequest{})
	want(t, apierrors.IsNotFound, err)
	_, err = c.Token(ctx, "default", "robot", &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(1))}})
	want(t, apierrors.IsInvalid, err)
}

func binding(t *testing.T, ctx context.Context, c client.Interface) {
	p := must[api.Object](t)(c.Create(ctx, pod("p"), client.WriteOptions{}))
	if err := c.Bind(ctx, "default", "p", p.GetUID(), "node1"); err != nil {
		t.Fatal(err)
	}
	want(t, apierrors.IsConflict, c.Bind(ctx, "default", "p", p.GetUID(), "node2"))
	bound := must[*corev1.Pod](t)(client.Get[*corev1.Pod](ctx, c, podKey("p")))
	if bound.Spec.NodeName != "node1" {
		t.Fatalf("bound to %q", bound.Spec.NodeName)
	}
	// A pod on a node is deleted in two steps: marked first, and removed when its kubelet confirms.
	asked := must[api.Object](t)(c.Delete(ctx, podKey("p"), nil))
	if asked.GetDeletionTimestamp() == nil || *asked.GetDeletionGracePeriodSeconds() != 30 {
		t.Fatalf("asked to go: %v", asked.GetDeletionTimestamp())
	}
	zero := int64(0)
	must[api.Object](t)(c.Delete(ctx, podKey("p"), &metav1.DeleteOptions{GracePeriodSeconds: &zero}))
	_, err := c.Get(ctx, podKey("p"))
	want(t, apierrors.IsNotFound, err)
}

func scaling(t *testing.T, ctx context.Context, c client.Interface) {
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	rs.Spec = appsv1.ReplicaSetSpec{Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}}
	must[api.Object](t)(c.Create(ctx, rs, client.WriteOptions{}))
	key := client.Key{Kind: api.ReplicaSets, Namespace: "default", Name: "web"}
	s := must[*autoscalingv1.Scale](t)(c.Scale(ctx, key))
	if s.Spec.Replicas != 2 || s.Status.Selector != "app=web" || s.Name != "web" || s.ResourceVersion == "" {
		t.Fatalf("%+v", s)
	}
	more := s.DeepCopy()
	more.Spec.Replicas = 5
	if got := must[*autoscalingv1.Scale](t)(c.SetScale(ctx, key, more)); got.Spec.Replicas != 5 || got.ResourceVersion == s.ResourceVersion {
		t.Fatalf("%+v", got)
	}
	more.Spec.Replicas = 6
	_, err := c.SetScale(ctx, key, more) // of an older version
	want(t, apierrors.IsConflict, err)
	_, err = c.Scale(ctx, client.Key{Kind: api.ReplicaSets, Namespace: "default", Name: "other"})
	want(t, apierrors.IsNotFound, err)
	_, err = c.Scale(ctx, client.Key{Kind: api.Pods, Namespace: "default", Name: "web"})
	want(t, apierrors.IsNotFound, err)
	_, err = c.SetScale(ctx, cmKey("a"), s)
	want(t, apierrors.IsNotFound, err)
}

func dryRun(t *testing.T, ctx context.Context, c client.Interface) {
	dry := client.WriteOptions{DryRun: true}
	must[api.Object](t)(c.Create(ctx, configMap("a", nil), dry))
	_, err := c.Get(ctx, cmKey("a"))
	want(t, apierrors.IsNotFound, err)
	must[api.Object](t)(c.Create(ctx, configMap("a", nil), client.WriteOptions{}))
	must[api.Object](t)(c.Update(ctx, configMap("a", map[string]string{"k": "v"}), dry))
	must[api.Object](t)(c.Delete(ctx, cmKey("a"), &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}))
	if cm := must[*corev1.ConfigMap](t)(client.Get[*corev1.ConfigMap](ctx, c, cmKey("a"))); len(cm.Data) != 0 {
		t.Fatalf("a dry run wrote %v", cm.Data)
	}
}

// ownership: objects that a caller passes in stay the caller's: they are not changed or kept.
func ownership(t *testing.T, ctx context.Context, c client.Interface) {
	mine := configMap("a", map[string]string{"k": "v"})
	before := mine.DeepCopy()
	must[api.Object](t)(c.Create(ctx, mine, client.WriteOptions{}))
	if fmt.Sprint(mine) != fmt.Sprint(before) {
		t.Fatalf("the caller's object became %v", mine)
	}
	mine.Data["k"] = "changed after the call"
	if cm := must[*corev1.ConfigMap](t)(client.Get[*corev1.ConfigMap](ctx, c, cmKey("a"))); cm.Data["k"] != "v" {
		t.Fatal("a change of the caller's object reached the cluster")
	}
}

// unknown is an object of a type that no table of kinds has.
type unknown struct{ corev1.ConfigMap }

// APIKind implements api.HasKind.
func (*unknown) APIKind() *api.Kind { return nil }

// edges is what is seldom used, and so the easiest to get differently.
func edges(t *testing.T, ctx context.Context, c client.Interface) {
	// Managers are noted from the first apply on.
	manifest := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default","finalizers":["example.com/hold"]}}`
	made := must[api.Object](t)(c.Patch(ctx, cmKey("a"), client.Patch{Type: types.ApplyPatchType, Data: []byte(manifest)}, client.WriteOptions{FieldManager: "me"}))
	changed := made.DeepCopyObject().(*corev1.ConfigMap)
	changed.Data = map[string]string{"k": "v"}
	made = must[api.Object](t)(c.Update(ctx, changed, client.WriteOptions{FieldManager: "you"}))
	if f := made.GetManagedFields(); len(f) != 2 || f[0].Manager != "me" || f[1].Manager != "you" {
		t.Fatalf("its managers are %+v", f)
	}
	_, err := c.Create(ctx, configMap("b", nil), client.WriteOptions{Subresource: "status"})
	want(t, apierrors.IsBadRequest, err)
	_, err = c.Get(ctx, cmKey("b"))
	want(t, apierrors.IsNotFound, err)
	answer := func(what string, of api.Object) {
		t.Helper()
		got := must[api.Object](t)(c.Delete(ctx, cmKey(of.GetName()), nil))
		if got.GetUID() != of.GetUID() || got.GetName() != of.GetName() || got.GetNamespace() != "default" || got.GetObjectKind().GroupVersionKind() != api.ConfigMaps.GVK() {
			t.Fatalf("%s: the answer is %+v", what, got)
		}
	}
	answer("deleted, but held", made)
	answer("deleted", must[api.Object](t)(c.Create(ctx, configMap("gone", nil), client.WriteOptions{})))
	_, err = c.Create(ctx, &unknown{*configMap("u", nil)}, client.WriteOptions{})
	want(t, apierrors.IsBadRequest, err)
	_, err = c.Update(ctx, &unknown{*configMap("u", nil)}, client.WriteOptions{})
	want(t, apierrors.IsBadRequest, err)
}
