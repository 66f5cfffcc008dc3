package registry_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/local"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
)

// TestANodeWatchesWhatItsPodsName: one object by its name and namespace, and only if a pod of the node
// names it.
func TestANodeWatchesWhatItsPodsName(t *testing.T) {
	reg := registrytest.New(t)
	admin := local.New(reg, registry.System)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}, Spec: corev1.PodSpec{NodeName: "n1",
		Containers: []corev1.Container{{Name: "c", Image: "x", EnvFrom: []corev1.EnvFromSource{
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}}}}}}}
	if _, err := admin.Create(t.Context(), pod, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.List(t.Context(), api.Pods, client.ListOptions{}); err != nil { // the cache has it now
		t.Fatal(err)
	}
	for _, c := range []struct {
		node, namespace, field, name string
		kind                         *api.Kind
		ok                           bool
	}{
		{"n1", "default", "metadata.name", "s", api.Secrets, true},
		{"n2", "default", "metadata.name", "s", api.Secrets, false},
		{"n1", "", "metadata.name", "s", api.Secrets, false},
		{"n1", "kube-node-lease", "metadata.name", "s", api.Secrets, false},
		{"n1", "default", "metadata.name", "other", api.Secrets, false},
		{"n1", "default", "metadata.name", "s", api.ConfigMaps, false},
		{"n1", "default", "metadata.namespace", "default", api.Secrets, false},
	} {
		node := local.New(reg, registry.NodeUser(c.node))
		sel := fields.OneTermEqualSelector(c.field, c.name)
		w, err := node.Watch(t.Context(), c.kind, client.WatchOptions{Namespace: c.namespace, Fields: sel})
		if err == nil {
			w.Stop()
		}
		_, lerr := node.List(t.Context(), c.kind, client.ListOptions{Namespace: c.namespace, Fields: sel})
		if (err == nil) != c.ok || (lerr == nil) != c.ok || !c.ok && !apierrors.IsForbidden(err) {
			t.Errorf("%+v: %v, %v", c, err, lerr)
		}
	}
}

// TestAPodGetsItsAccountsPullSecrets, unless it names some itself.
func TestAPodGetsItsAccountsPullSecrets(t *testing.T) {
	admin := local.New(registrytest.New(t), registry.System)
	create := func(obj api.Object) api.Object {
		t.Helper()
		obj.SetNamespace("default")
		got, err := admin.Create(t.Context(), obj, client.WriteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "me"}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "s"}}})
	if _, err := admin.List(t.Context(), api.ServiceAccounts, client.ListOptions{}); err != nil { // the cache has it now
		t.Fatal(err)
	}
	for name, own := range map[string][]corev1.LocalObjectReference{"none": nil, "own": {{Name: "mine"}}} {
		pod := create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{ServiceAccountName: "me", ImagePullSecrets: own,
			Containers: []corev1.Container{{Name: "c", Image: "x"}}}}).(*corev1.Pod)
		want := "s"
		if own != nil {
			want = "mine"
		}
		if got := pod.Spec.ImagePullSecrets; len(got) != 1 || got[0].Name != want {
			t.Errorf("%s: %v, want %s", name, got, want)
		}
	}
}
