package gc

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	ct "minik8s/internal/controller/controllertest"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
)

// A kind that is added later owns and is owned like the others. Dependents of its objects were left alone before.
func TestAddKind(t *testing.T) {
	c := ct.New(t)
	c.Start(New(c.As("gc-controller"), c.Views(), c.Kinds(), quiet).Run)
	owned := func(name string, by *registrytest.Gadget) *corev1.ConfigMap {
		return ct.Create(c, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "test.minik8s.io/v1", Kind: "Gadget", Name: by.Name, UID: by.UID}}}})
	}
	owned("early", &registrytest.Gadget{ObjectMeta: metav1.ObjectMeta{Name: "never", UID: "u"}})
	c.AddKind(registrytest.Gadgets, &registry.Strategy{})
	ct.Until(c, "what nobody owns is gone", api.ConfigMaps, func(list []*corev1.ConfigMap) bool { return len(list) == 0 })

	g := ct.Create(c, &registrytest.Gadget{ObjectMeta: metav1.ObjectMeta{Name: "g"}})
	owned("late", g)
	ct.Create(c, &registrytest.Gadget{ObjectMeta: metav1.ObjectMeta{Name: "below", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "test.minik8s.io/v1", Kind: "Gadget", Name: g.Name, UID: g.UID}}}})
	if _, err := c.Admin().Delete(c.Context(), client.KeyOf(g), nil); err != nil {
		t.Fatal(err)
	}
	ct.Until(c, "what the gadget owned is gone", api.ConfigMaps, func(list []*corev1.ConfigMap) bool { return len(list) == 0 })
	ct.Until(c, "gadgets too", registrytest.Gadgets, func(list []*registrytest.Gadget) bool { return len(list) == 0 })
}
