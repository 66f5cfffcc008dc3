package registry_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/local"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
)

// The finalizers of the garbage collector are those of the last deletion that asked for a policy.
func TestPropagation(t *testing.T) {
	admin := local.New(registrytest.New(t), registry.System)
	const mine = "example.com/mine"
	const orphan, foreground = metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents
	by := func(p metav1.DeletionPropagation) *metav1.DeleteOptions {
		return &metav1.DeleteOptions{PropagationPolicy: &p}
	}
	old := func(orphan bool) *metav1.DeleteOptions {
		//lint:ignore SA1019 old clients send it
		return &metav1.DeleteOptions{OrphanDependents: &orphan}
	}
	both := by(metav1.DeletePropagationOrphan)
	//lint:ignore SA1019 so do those who are mistaken
	both.OrphanDependents = new(true)
	for _, x := range []struct {
		name    string
		have    []string
		deletes []*metav1.DeleteOptions
		want    []string // nil: it is gone
		refused bool
	}{
		{"nothing asked", nil, []*metav1.DeleteOptions{nil}, nil, false},
		{"foreground", nil, []*metav1.DeleteOptions{by(metav1.DeletePropagationForeground)}, []string{foreground}, false},
		{"foreground, then background", nil, []*metav1.DeleteOptions{by(metav1.DeletePropagationForeground), by(metav1.DeletePropagationBackground)}, nil, false},
		{"foreground, then orphan", nil, []*metav1.DeleteOptions{by(metav1.DeletePropagationForeground), by(metav1.DeletePropagationOrphan)}, []string{orphan}, false},
		{"orphan, then nothing", nil, []*metav1.DeleteOptions{by(metav1.DeletePropagationOrphan), nil}, []string{orphan}, false},
		{"orphan, then an old client's background", nil, []*metav1.DeleteOptions{by(metav1.DeletePropagationOrphan), old(false)}, nil, false},
		{"an old client's orphan, then foreground", []string{mine}, []*metav1.DeleteOptions{old(true), by(metav1.DeletePropagationForeground)}, []string{mine, foreground}, false},
		{"others' stay", []string{foreground, mine}, []*metav1.DeleteOptions{by(metav1.DeletePropagationBackground)}, []string{mine}, false},
		{"the same again", []string{foreground, mine}, []*metav1.DeleteOptions{by(metav1.DeletePropagationForeground)}, []string{foreground, mine}, false},
		{"both ways at once", []string{mine}, []*metav1.DeleteOptions{both}, []string{mine}, true},
		{"no policy", []string{mine}, []*metav1.DeleteOptions{by("Sideways")}, []string{mine}, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			key := client.Key{Kind: api.ConfigMaps, Namespace: "default", Name: "c"}
			_, err := admin.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c", Finalizers: x.have}}, client.WriteOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, opts := range x.deletes {
				if _, err := admin.Delete(t.Context(), key, opts); (err != nil) != x.refused {
					t.Fatal(err)
				}
			}
			now, err := client.Get[*corev1.ConfigMap](t.Context(), admin, key)
			if x.want == nil {
				if !apierrors.IsNotFound(err) {
					t.Fatalf("it is still there: %v, %v", now, err)
				}
				return
			}
			if err != nil || !slices.Equal(now.Finalizers, x.want) {
				t.Fatalf("finalizers %v, %v; want %v", now.Finalizers, err, x.want)
			}
			if now.DeletionTimestamp == nil {
				if _, err := admin.Delete(t.Context(), key, nil); err != nil {
					t.Fatal(err)
				}
			}
			clear := now.DeepCopy()
			clear.Finalizers, clear.ResourceVersion = nil, ""
			if _, err := admin.Update(t.Context(), clear, client.WriteOptions{}); err != nil {
				t.Fatal(err)
			}
		})
	}
}
