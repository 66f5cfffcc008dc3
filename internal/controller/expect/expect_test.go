package expect_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/controller/expect"
	"minik8s/internal/controller/loop"
	"minik8s/internal/informer"
)

// script is a client whose lists and watches are the test's to give.
type script struct {
	client.Interface
	stored map[string]*corev1.Pod // what Get finds; nil: Get fails
	lists  chan *client.List
	events chan client.Event
}

func (s *script) Watch(ctx context.Context, _ *api.Kind, opts client.WatchOptions) (client.Watcher, error) {
	w := &watch{out: make(chan client.Event)}
	go func() {
		defer close(w.out)
		if opts.ResourceVersion == "" && !s.initial(ctx, w) {
			return
		}
		for {
			select {
			case e := <-s.events:
				if e.Object == nil { // the test breaks the watch
					return
				}
				w.out <- e
			case <-ctx.Done():
				return
			}
		}
	}()
	return w, nil
}

// initial sends the list with which a watch begins.
func (s *script) initial(ctx context.Context, w *watch) bool {
	select {
	case l := <-s.lists:
		for _, obj := range l.Items {
			w.out <- client.Event{Type: client.Added, Object: obj, ResourceVersion: obj.GetResourceVersion()}
		}
		w.out <- client.Event{Type: client.Bookmark, ResourceVersion: l.ResourceVersion, InitialEnd: true}
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *script) Get(_ context.Context, key client.Key) (api.Object, error) {
	p, ok := s.stored[key.Name]
	switch {
	case s.stored == nil:
		return nil, errDown
	case !ok:
		return nil, apierrors.NewNotFound(api.Pods.GR(), key.Name)
	}
	return p, nil
}

var errDown = apierrors.NewServiceUnavailable("down")

type watch struct{ out chan client.Event }

func (w *watch) Events() <-chan client.Event { return w.out }
func (w *watch) Err() error                  { return apierrors.NewResourceExpired("the history is gone") }
func (w *watch) Stop()                       {}

func pod(name string, revision int, going bool) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name),
		ResourceVersion: strconv.Itoa(revision)}}
	if going {
		p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	}
	return p
}

func list(revision int, pods ...*corev1.Pod) *client.List {
	l := &client.List{Kind: api.Pods, ResourceVersion: strconv.Itoa(revision)}
	for _, p := range pods {
		l.Items = append(l.Items, p)
	}
	return l
}

func TestSettled(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c := &script{lists: make(chan *client.List), events: make(chan client.Event)}
	defer close(c.events)
	view := informer.New[*corev1.Pod](c, api.Pods, informer.Options{})
	told := make(chan string, 10)
	view.OnChange(func(old, now *corev1.Pod) {
		if now == nil {
			now = old
		}
		told <- now.Name
	})
	key, woken := loop.Key{Namespace: "default", Name: "web"}, make(chan loop.Key, 10)
	e := expect.New(c, view, func(k loop.Key) { woken <- k })
	ready := make(chan struct{})
	go view.Run(ctx, func() { close(ready) }) //nolint:errcheck // it ends with ctx
	c.lists <- list(10, pod("a", 3, false), pod("b", 4, false))
	<-told
	<-told
	<-ready // the first list has woken who waited by then, so that what wakes below is the second

	settled := func(when string, want bool) {
		t.Helper()
		if got, err := e.Settled(ctx, key); got != want || err != nil {
			t.Fatalf("%s: settled is %v, %v", when, got, err)
		}
	}
	event := func(typ client.EventType, p *corev1.Pod) {
		t.Helper()
		c.events <- client.Event{Type: typ, Object: p, ResourceVersion: p.ResourceVersion}
		<-told
	}
	settled("nothing was done", true)

	e.Wrote(key, pod("c", 12, false))
	e.Wrote(key, pod("d", 11, false)) // written concurrently, noted in the other order
	settled("two were made", false)
	event(client.Added, pod("d", 11, false))
	settled("one of two was seen", false)
	if ok, _ := e.Settled(ctx, loop.Key{Name: "other"}); !ok {
		t.Error("another owner has to wait")
	}
	event(client.Added, pod("c", 12, false))
	settled("both were seen", true)

	e.Deleted(key, pod("a", 3, false))
	e.Deleted(key, pod("b", 4, false))
	settled("two are being deleted", false)
	event(client.Modified, pod("a", 13, true))
	settled("one is seen going", false)
	event(client.Deleted, pod("b", 14, true))
	settled("one is seen going, one has gone", true)
	e.Deleted(key, pod("b", 4, false))
	settled("it had gone before that was noted", true)

	e.Wrote(key, pod("e", 16, false)) // and e is deleted again, and the watch breaks before any of it
	settled("made, and never to be seen", false)
	c.events <- client.Event{}
	c.lists <- list(20)
	if k := <-woken; k != key {
		t.Errorf("woke %v", k)
	}
	for len(told) > 0 { // for changes that the list skipped
		<-told
	}
	settled("a later list is there", true)

	e.Failed(key, pod("f", 0, false), apierrors.NewForbidden(api.Pods.GR(), "f", nil))
	settled("a write was refused", true)
	for _, err := range []error{errDown, context.DeadlineExceeded, apierrors.NewAlreadyExists(api.Pods.GR(), "f"),
		apierrors.NewConflict(api.Pods.GR(), "f", nil)} {
		e.Failed(key, pod("f", 0, false), err)
		if ok, err := e.Settled(ctx, key); ok || err == nil {
			t.Errorf("settled is %v, %v though nobody can be asked", ok, err)
		}
	}
	c.stored = map[string]*corev1.Pod{"g": pod("g", 22, false)}
	settled("it was not made", true)
	e.Failed(key, pod("g", 0, false), errDown)
	settled("it was made", false)
	event(client.Added, pod("g", 22, false))
	settled("it was made and is seen", true)
	delete(c.stored, "g")
	e.Failed(key, pod("g", 22, false), errDown) // its deletion
	settled("it is gone, but still to be seen", false)
	event(client.Deleted, pod("g", 23, false))
	settled("it is seen to be gone", true)

	of := func(p *corev1.Pod, controller string) *corev1.Pod {
		p.OwnerReferences = []metav1.OwnerReference{{Name: controller, Controller: new(true)}}
		return p
	}
	c.stored["h"] = of(pod("h", 40, false), "another")
	e.Failed(key, pod("h", 0, false), apierrors.NewAlreadyExists(api.Pods.GR(), "h"))
	settled("the name is another's", true)
	c.stored["web"] = of(pod("web", 24, false), "above") // the owner itself, whose status was written
	e.Failed(key, pod("web", 0, false), errDown)
	settled("the owner was written, and has one of its own", false)
	event(client.Added, pod("web", 24, false))
	settled("it is seen", true)

	e.Wrote(key, pod("f", 30, false))
	e.Forget(key)
	settled("the owner was forgotten", true)
}
