package gc

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// patience bounds a wait that ends early unless something is broken.
const patience = 30 * time.Second

// world is every object at one moment.
type world map[client.Key]api.Object

// owner is the object that a reference names, by kind, namespace, name and UID; nil if it is not there.
func (w world) owner(of api.Object, ref metav1.OwnerReference) api.Object {
	at := client.Key{Kind: api.ByGVK(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)), Name: ref.Name}
	if at.Kind.Namespaced {
		at.Namespace = of.GetNamespace()
	}
	if o := w[at]; o != nil && o.GetUID() == ref.UID {
		return o
	}
	return nil
}

func going(o api.Object) bool { return o.GetDeletionTimestamp() != nil }

func waits(o api.Object, finalizer string) bool {
	return going(o) && slices.Contains(o.GetFinalizers(), finalizer)
}

// lives reports whether an owner keeps its dependents.
func lives(o api.Object) bool { return o != nil && !waits(o, metav1.FinalizerDeleteDependents) }

// unfinished names something that the collector still has to do; empty if nothing.
func unfinished(w world) string {
	for key, obj := range w {
		if going(obj) {
			return fmt.Sprintf("%s is being deleted, with the finalizers %v", key, obj.GetFinalizers())
		}
		for _, ref := range obj.GetOwnerReferences() {
			if w.owner(obj, ref) == nil {
				return fmt.Sprintf("%s names %s %s (%s), which is not there", key, ref.Kind, ref.Name, ref.UID)
			}
		}
	}
	return ""
}

// judge replays a history and fails the test for everything that the collector should not have done.
func judge(t *testing.T, history []client.Event, chosen map[types.UID]bool) {
	t.Helper()
	w := world{}
	collected := 0
	for _, e := range history {
		key := client.KeyOf(e.Object)
		before := w[key]
		if e.Type == client.Deleted {
			delete(w, key)
		} else {
			w[key] = e.Object
		}
		ends := e.Type == client.Deleted || going(e.Object)
		if before == nil || !ends {
			continue
		}
		if !going(before) && !chosen[before.GetUID()] {
			collected++
			w.mayBeCollected(t, before)
		}
		if e.Type == client.Deleted {
			w.leavesNothing(t, before)
		}
	}
	if what := unfinished(w); what != "" {
		t.Errorf("in the end %s", what)
	}
	if collected == 0 {
		t.Log("nothing was collected: this graph shows little")
	}
}

// mayBeCollected complains if an object that the collector deletes has an owner that lives, or none at all.
func (w world) mayBeCollected(t *testing.T, obj api.Object) {
	t.Helper()
	if len(obj.GetOwnerReferences()) == 0 {
		t.Errorf("%s names no owner and was collected", client.KeyOf(obj))
	}
	for _, ref := range obj.GetOwnerReferences() {
		if o := w.owner(obj, ref); o != obj && lives(o) {
			t.Errorf("%s was collected, and its owner %s lives", client.KeyOf(obj), client.KeyOf(o))
		}
	}
}

// leavesNothing complains if an owner that had to wait for the collector went and left what it should not.
func (w world) leavesNothing(t *testing.T, owner api.Object) {
	t.Helper()
	key := client.KeyOf(owner)
	for k, obj := range w {
		for _, ref := range obj.GetOwnerReferences() {
			if ref.UID != owner.GetUID() || key.Namespace != "" && key.Namespace != k.Namespace {
				continue
			}
			blocks := ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
			switch {
			case waits(owner, metav1.FinalizerOrphanDependents):
				t.Errorf("%s was to orphan its dependents and went while %s names it", key, k)
			case waits(owner, metav1.FinalizerDeleteDependents) && blocks:
				t.Errorf("%s went before %s, which blocks it", key, k)
			}
		}
	}
}
