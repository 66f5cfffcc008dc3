package registry_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/local"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
	"minik8s/internal/store"
	"minik8s/internal/store/memory"
)

// reversed is a JSON text with the fields of each object in reversed alphabetical order, but for those with which
// every stored object begins.
func reversed(t *testing.T, raw []byte, first ...string) []byte {
	t.Helper()
	var fields map[string]json.RawMessage
	var items []json.RawMessage
	var out bytes.Buffer
	switch {
	case json.Unmarshal(raw, &fields) == nil && fields != nil:
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(fields)), func(n string) bool { return slices.Contains(first, n) })
		slices.Reverse(names)
		var parts []string
		for _, n := range append(first, names...) {
			parts = append(parts, `"`+n+`":`+string(reversed(t, fields[n])))
		}
		out.WriteString("{" + strings.Join(parts, ",") + "}")
	case json.Unmarshal(raw, &items) == nil && items != nil:
		var parts []string
		for _, i := range items {
			parts = append(parts, string(reversed(t, i)))
		}
		out.WriteString("[" + strings.Join(parts, ",") + "]")
	default:
		return raw
	}
	return out.Bytes()
}

// Objects that were stored with another order of fields, as by a daemon of another version, are the same objects: they
// are read and sent as such, and writing what is there already is no write.
func TestStoredFieldOrderDoesNotMatter(t *testing.T) {
	s := memory.New()
	reg, stop := registrytest.Start(t, s)
	admin := local.New(reg, registry.System)
	objects := []api.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: map[string]string{"b": "1", "a": "2"}}, Data: map[string]string{"x": "{\"b\":1,\"a\":2}"}},
		&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Spec: appsv1.ReplicaSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "x:1", Command: []string{"z", "y"}}}}}}},
	}
	var stored []api.Object
	for _, obj := range objects {
		made, err := admin.Create(t.Context(), obj, client.WriteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, made)
	}
	stop()
	for _, obj := range stored {
		kind := api.KindOf(obj)
		key := "/registry/" + strings.TrimPrefix(kind.Group+"/"+kind.Plural, "/") + "/default/" + obj.GetName()
		kv, err := s.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		other := reversed(t, kv.Value, "kind", "apiVersion", "metadata")
		if bytes.Equal(other, kv.Value) || len(other) != len(kv.Value) {
			t.Fatalf("the order is not another one:\n%s\n%s", kv.Value, other)
		}
		if _, err := s.Write(t.Context(), store.Update(key, other, kv.Modified)); err != nil {
			t.Fatal(err)
		}
	}
	reg, stop = registrytest.Start(t, s)
	defer stop()
	admin = local.New(reg, registry.System)
	for _, was := range stored {
		key := client.KeyOf(was)
		e, err := reg.Get(t.Context(), registrytest.Ask("get", key.Kind, key.Namespace, key.Name, ""))
		if err != nil {
			t.Fatal(err)
		}
		sent := key.Kind.New()
		if err := json.Unmarshal(e.AppendJSON(nil), sent); err != nil {
			t.Fatal(err)
		}
		if !apiequality.Semantic.DeepEqual(sent, e.Object()) {
			t.Errorf("sent is %+v, read is %+v", sent, e.Object())
		}
		want := was.DeepCopyObject().(api.Object)
		want.SetResourceVersion(sent.GetResourceVersion())
		if !apiequality.Semantic.DeepEqual(sent, want) {
			t.Errorf("%+v has become %+v", want, sent)
		}
		again, err := admin.Update(t.Context(), want, client.WriteOptions{})
		if err != nil || again.GetResourceVersion() != want.GetResourceVersion() {
			t.Errorf("%s: %v; it was written again", key, err)
		}
		want = want.DeepCopyObject().(api.Object)
		want.SetLabels(map[string]string{"b": "2", "a": "1"}) // the same bytes in another order, but not the same object
		again, err = admin.Update(t.Context(), want, client.WriteOptions{})
		if err != nil || again.GetResourceVersion() == want.GetResourceVersion() {
			t.Errorf("%s: %v; the change was not written", key, err)
		}
	}
}

// What damaged the bytes of an object from outside damages nothing else: the object is listed by its name, says that it
// is damaged, and can be deleted.
func TestDamagedObject(t *testing.T) {
	s := memory.New()
	for name, raw := range map[string]string{"zeros": "\x00\x00\x00", "empty": "", "null": "null", "nothing": "{}", "other": `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"b","namespace":"default"}}`,
		"middle": "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\x00\x00\"middle\",\"namespace\":\"default\"}}", "cut": `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"cut","names`} {
		if _, err := s.Write(t.Context(), store.Create("/registry/configmaps/default/"+name, []byte(raw))); err != nil {
			t.Fatal(err)
		}
	}
	reg, stop := registrytest.Start(t, s)
	defer stop()
	l, err := reg.List(t.Context(), registrytest.Ask("list", api.ConfigMaps, "default", "", ""), registry.ListOptions{})
	if err != nil || len(l.Entries) != 7 {
		t.Fatal(l, err)
	}
	for _, e := range l.Entries {
		e.Object() // as the garbage collector does
		var sent corev1.ConfigMap
		if err := json.Unmarshal(e.AppendJSON(nil), &sent); err != nil {
			t.Errorf("%s: %v: %s", e.Key(), err, e.AppendJSON(nil))
		}
		if "default/"+sent.Name != e.Key() || sent.Annotations["minik8s.io/damaged"] == "" || sent.ResourceVersion == "" {
			t.Errorf("%s: %+v", e.Key(), sent)
		}
		if _, _, err := reg.Delete(t.Context(), registrytest.Ask("delete", api.ConfigMaps, "default", sent.Name, ""), nil); err != nil {
			t.Errorf("%s: %v", e.Key(), err)
		}
	}
	l, err = reg.List(t.Context(), registrytest.Ask("list", api.ConfigMaps, "default", "", ""), registry.ListOptions{})
	if err != nil || len(l.Entries) != 0 {
		t.Error(l, err)
	}
}
