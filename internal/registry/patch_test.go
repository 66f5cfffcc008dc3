package registry_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/local"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
)

// patched is a registry with the pod web, and what a patch of it is answered.
func patched(t *testing.T) func(types.PatchType, string) error {
	t.Helper()
	reg := registrytest.New(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Annotations: map[string]string{"a": strings.Repeat("x", 10000)}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i", Ports: []corev1.ContainerPort{{ContainerPort: 80}},
			Env: []corev1.EnvVar{{Name: "A", Value: "b"}}}}}}
	if _, err := local.New(reg, registry.System).Create(t.Context(), pod, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	return func(patchType types.PatchType, patch string) error {
		_, _, err := reg.Patch(t.Context(), registrytest.Ask("patch", api.Pods, "default", "web", ""), registry.Patch{Type: patchType, Data: []byte(patch)}, registry.WriteOptions{DryRun: true})
		return err
	}
}

func TestBadPatches(t *testing.T) {
	patch := patched(t)
	var copies []string
	for i := range 1000 {
		copies = append(copies, fmt.Sprintf(`{"op":"copy","from":"/metadata/annotations/a","path":"/metadata/annotations/b%d"}`, i))
	}
	for _, x := range []struct {
		name      string
		patchType types.PatchType
		patch     string
		ok        func(error) bool
		says      string
	}{
		{"an object as the name of a container", types.StrategicMergePatchType, `{"spec":{"containers":[{"name":{"a":1},"image":"x"}]}}`, apierrors.IsBadRequest, "spec.containers[0].name"},
		{"a list as the name of a variable", types.StrategicMergePatchType, `{"spec":{"containers":[{"name":"c","env":[{"name":["a"]}]}]}}`, apierrors.IsBadRequest, "spec.containers[0].env[0].name"},
		{"an object in an order", types.StrategicMergePatchType, `{"spec":{"$setElementOrder/containers":[{"name":{}}],"containers":[{"name":"c"}]}}`, apierrors.IsBadRequest, "name"},
		{"copies that double", types.JSONPatchType, "[" + strings.Join(copies, ",") + "]", apierrors.IsInvalid, "copy"},
	} {
		if err := patch(x.patchType, x.patch); !x.ok(err) || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: %v", x.name, err)
		}
	}
}

// TestRandomPatches: whatever a patch holds, it is applied or refused for what is wrong with it; nothing panics.
func TestRandomPatches(t *testing.T) {
	patch := patched(t)
	rnd := rand.New(rand.NewPCG(7, 7)) //nolint:gosec // the same each time
	words := []string{"spec", "containers", "name", "env", "ports", "containerPort", "protocol", "metadata", "annotations", "labels", "volumes", "tolerations", "key",
		"finalizers", "ownerReferences", "uid", "$patch", "$retainKeys", "$setElementOrder/containers", "$setElementOrder/env", "$deleteFromPrimitiveList/finalizers",
		"imagePullSecrets", "topologySpreadConstraints", "topologyKey", "hostAliases", "ip", "value", "valueFrom"}
	leaves := []any{nil, 1, 1.5, true, "c", "delete", "replace", "merge", "", []any{}, map[string]any{}}
	var value func(depth int) any
	value = func(depth int) any {
		switch n := rnd.IntN(10); {
		case depth == 0 || n < 3:
			return leaves[rnd.IntN(len(leaves))]
		case n < 5:
			list := make([]any, rnd.IntN(3))
			for i := range list {
				list[i] = value(depth - 1)
			}
			return list
		}
		m := map[string]any{}
		for range rnd.IntN(4) {
			m[words[rnd.IntN(len(words))]] = value(depth - 1)
		}
		return m
	}
	for range 5000 {
		doc := map[string]any{"spec": map[string]any{"containers": value(4), words[rnd.IntN(len(words))]: value(4)}, words[rnd.IntN(len(words))]: value(5)}
		raw, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("%s: %v", raw, p)
				}
			}()
			err = patch(types.StrategicMergePatchType, string(raw))
		}()
		if apierrors.IsInternalError(err) {
			t.Errorf("%s: %v", raw, err)
		}
	}
}
