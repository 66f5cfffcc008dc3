package registry_test

import (
	"log/slog"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/local"
	"minik8s/internal/registry"
	"minik8s/internal/registry/strategy"
	"minik8s/internal/store/memory"
)

// What a part of the daemon would do for a user, the user must be allowed to do: on every way to write the object, and not for
// its status.
func TestNeeds(t *testing.T) {
	rows := strategy.All(strategy.Settings{})
	configMaps := *rows[api.ConfigMaps]
	configMaps.Needs = func(obj, _ api.Object, kinds *api.Table) []registry.Needed {
		switch obj.(*corev1.ConfigMap).Data["reads"] {
		case "secrets":
			return []registry.Needed{{Verb: "watch", Kind: kinds.ByGVK(api.Secrets.GVK()), Namespace: obj.GetNamespace(), For: "data.reads"}}
		case "calls":
			return []registry.Needed{{Verb: "create", Kind: api.Functions, Sub: "call", Namespace: obj.GetNamespace(), For: "data.reads"}}
		}
		return nil
	}
	rows[api.ConfigMaps] = &configMaps
	reg := registry.New(memory.New(), rows, slog.New(slog.DiscardHandler))
	ready := make(chan struct{})
	go reg.Run(t.Context(), func() { close(ready) }) //nolint:errcheck // it ends with the test
	<-ready
	if err := reg.Ensure(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}); err != nil {
		t.Fatal(err)
	}
	admin, part := local.New(reg, registry.System), local.New(reg, registry.Part("serviceaccount-controller")) // it may make ConfigMaps, and read no Secrets
	object := func(reads string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"}, Data: map[string]string{"reads": reads}}
	}
	refused := func(what string, err error) {
		t.Helper()
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "data.reads needs somebody who may watch secrets in namespace default") {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := part.Create(t.Context(), object("secrets"), client.WriteOptions{})
	refused("create", err)
	if _, err := part.Create(t.Context(), object("nothing"), client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := part.Update(t.Context(), object("calls"), client.WriteOptions{}); err == nil || !strings.Contains(err.Error(), "may create functions/call in namespace default") {
		t.Errorf("a subresource: %v", err)
	}
	_, err = part.Update(t.Context(), object("secrets"), client.WriteOptions{})
	refused("update", err)
	if _, err := admin.Update(t.Context(), object("secrets"), client.WriteOptions{}); err != nil {
		t.Error(err)
	}
}
