package gc

import (
	"log/slog"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/client"
	ct "minik8s/internal/controller/controllertest"
)

func TestDecide(t *testing.T) {
	ref := func(uid types.UID, block bool) metav1.OwnerReference {
		return metav1.OwnerReference{UID: uid, BlockOwnerDeletion: &block}
	}
	two := []metav1.OwnerReference{ref("a", true), ref("b", false)}
	dep := &item{uid: "d", owners: []metav1.OwnerReference{ref("x", true)}}
	loose := &item{uid: "l", owners: []metav1.OwnerReference{ref("x", false)}}
	for name, test := range map[string]struct {
		obj    *item
		owners []ownerState
		deps   []*item
		want   func(a action) bool
	}{
		"all exist":       {&item{uid: "x", owners: two}, []ownerState{exists, exists}, nil, func(a action) bool { return a.remove == "" && len(a.dropRefs) == 0 }},
		"one gone":        {&item{uid: "x", owners: two}, []ownerState{exists, absent}, nil, func(a action) bool { return slices.Equal(a.dropRefs, []types.UID{"b"}) && a.remove == "" }},
		"all gone":        {&item{uid: "x", owners: two}, []ownerState{absent, absent}, nil, func(a action) bool { return a.remove == metav1.DeletePropagationBackground }},
		"gone, orphaning": {&item{uid: "x", owners: two, orphan: true}, []ownerState{absent, absent}, nil, func(a action) bool { return a.remove == metav1.DeletePropagationOrphan }},
		"owner waits":     {&item{uid: "x", owners: two}, []ownerState{absent, waiting}, nil, func(a action) bool { return a.remove == metav1.DeletePropagationBackground }},
		"owner waits, dependents": {&item{uid: "x", owners: two}, []ownerState{absent, waiting}, []*item{dep}, func(a action) bool {
			return a.remove == metav1.DeletePropagationForeground
		}},
		"going":   {&item{uid: "x", owners: two, deleting: true}, []ownerState{absent, absent}, nil, func(a action) bool { return a.remove == "" }},
		"blocked": {&item{uid: "x", deleting: true, foreground: true}, nil, []*item{dep}, func(a action) bool { return len(a.wake) == 1 && a.dropFinalizer == "" }},
		"not blocked": {&item{uid: "x", deleting: true, foreground: true}, nil, []*item{loose}, func(a action) bool {
			return len(a.wake) == 1 && a.dropFinalizer == metav1.FinalizerDeleteDependents
		}},
		"orphans": {&item{uid: "x", deleting: true, orphan: true}, nil, []*item{dep}, func(a action) bool {
			return len(a.release) == 1 && a.dropFinalizer == metav1.FinalizerOrphanDependents
		}},
	} {
		if a := decide(test.obj, test.owners, test.deps); !test.want(a) {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

// TestCollects: a chain of three, deleted in each of the three ways.
func TestCollects(t *testing.T) {
	c := ct.New(t)
	c.Start(New(c.As("gc-controller"), c.Views(), c.Kinds(), slog.New(slog.DiscardHandler)).Run)
	chain := func(name string, owners ...api.Object) *corev1.ConfigMap {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, o := range owners {
			block := true
			cm.OwnerReferences = append(cm.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap",
				Name: o.GetName(), UID: o.GetUID(), BlockOwnerDeletion: &block})
		}
		return ct.Create(c, cm)
	}
	names := func(want ...string) func([]*corev1.ConfigMap) bool {
		return func(list []*corev1.ConfigMap) bool {
			var got []string
			for _, cm := range list {
				got = append(got, cm.Name)
			}
			return slices.Equal(got, want)
		}
	}
	remove := func(obj api.Object, how metav1.DeletionPropagation) {
		if _, err := c.Admin().Delete(c.Context(), client.KeyOf(obj), &metav1.DeleteOptions{PropagationPolicy: &how}); err != nil {
			t.Fatal(err)
		}
	}
	for _, how := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
		a := chain("a")
		chain("c", chain("b", a))
		ct.Until(c, "all there", api.ConfigMaps, names("a", "b", "c"))
		remove(a, how)
		ct.Until(c, "all gone: "+string(how), api.ConfigMaps, names())
	}
	a := chain("a")
	other := chain("other")
	chain("b", a)
	chain("c", a, other)
	remove(a, metav1.DeletePropagationOrphan)
	ct.Until(c, "orphans", api.ConfigMaps, func(list []*corev1.ConfigMap) bool {
		return names("b", "c", "other")(list) && len(list[0].OwnerReferences) == 0 && len(list[1].OwnerReferences) == 1
	})
	remove(other, metav1.DeletePropagationBackground)
	ct.Until(c, "the one that had another owner too", api.ConfigMaps, names("b"))
	// One that names an owner which never existed is deleted, too.
	chain("d", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "nobody", UID: "u"}})
	ct.Until(c, "nobody's", api.ConfigMaps, names("b"))
}
