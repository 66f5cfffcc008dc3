package storage

import (
	"reflect"
	"runtime"
	"testing"
	"time"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
)

func siblingPod(name, owner, image string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": image}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}, NodeName: string([]byte("node"))}}
	if owner != "" {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{UID: "uid-" + "x", Name: owner, Controller: &yes}}
	}
	return p
}

// Objects share what is equal in them, and nothing else; the one before an object is asked first.
func TestSiblingsShare(t *testing.T) {
	s := newSiblings(api.Pods)
	var held []*api.Object
	share := func(p, prev api.Object) {
		held = append(held, &p)
		s.share(&p, prev)
	}
	one, two, other := siblingPod("one", "set", "a"), siblingPod("two", "set", "a"), siblingPod("other", "", "b")
	for _, p := range []*corev1.Pod{one, two, other} {
		want := p.DeepCopy()
		share(p, nil)
		if !reflect.DeepEqual(p, want) {
			t.Errorf("%+v became %+v", want, p)
		}
	}
	if &one.Spec.Containers[0] != &two.Spec.Containers[0] || &one.OwnerReferences[0] != &two.OwnerReferences[0] || unsafe.StringData(one.Spec.NodeName) != unsafe.StringData(two.Spec.NodeName) {
		t.Error("siblings share nothing")
	}
	later := other.DeepCopy()
	later.Status.Phase = corev1.PodRunning
	share(later, other)
	if &later.Spec.Containers[0] != &other.Spec.Containers[0] || later.Status.Phase != corev1.PodRunning || other.Status.Phase != "" {
		t.Errorf("a later version: %+v", later)
	}
	// What was equal, and is not any more, is its own.
	changed := two.DeepCopy()
	changed.Spec.Containers[0].Image = "c"
	share(changed, two)
	if two.Spec.Containers[0].Image != "a" || changed.Spec.Containers[0].Image != "c" {
		t.Error("a change reached another object")
	}
	runtime.KeepAlive(held)
}

// An object that was deleted is not kept for its siblings, whenever it was read.
func TestSiblingsKeepNothing(t *testing.T) {
	for _, late := range []bool{false, true} {
		s := newSiblings(api.Secrets)
		gone := make(chan struct{})
		e := &Entry{kind: api.Secrets, key: "default/a", rev: 1, siblings: s, text: []byte(jsonHead(api.Secrets) + `"name":"a","namespace":"default"},"data":{"key":"aGlkZGVu"}}`)}
		if late {
			e.end()
		}
		secret := e.Object().(*corev1.Secret)
		if string(secret.Data["key"]) != "hidden" {
			t.Fatal(secret)
		}
		runtime.AddCleanup(secret, func(gone chan struct{}) { close(gone) }, gone)
		e.end()
		e, secret = nil, nil
		for end := time.Now().Add(10 * time.Second); ; {
			runtime.GC()
			select {
			case <-gone:
			case <-time.After(10 * time.Millisecond):
				if time.Now().Before(end) {
					continue
				}
				t.Error("a deleted Secret stays in memory")
			}
			break
		}
		runtime.KeepAlive(s)
	}
}
