package clienttest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/client"
)

// manager applies manifests of one object under a name.
type manager struct {
	c   client.Interface
	key client.Key
}

func (m manager) apply(ctx context.Context, name, manifest string, force bool) (api.Object, error) {
	return m.c.Patch(ctx, m.key, client.Patch{Type: types.ApplyPatchType, Data: []byte(manifest), Force: force},
		client.WriteOptions{FieldManager: name, FieldValidation: metav1.FieldValidationStrict})
}

// entries is who manages an object: "name operation subresource", in order.
func entries(obj api.Object) string {
	var out []string
	for _, e := range obj.GetManagedFields() {
		out = append(out, strings.TrimSpace(e.Manager+" "+string(e.Operation)+" "+e.Subresource))
	}
	return strings.Join(out, ", ")
}

func applying(t *testing.T, ctx context.Context, c client.Interface) {
	m := manager{c, cmKey("a")}
	manifest := func(data string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default"},"data":` + data + `}`
	}
	_, err := m.apply(ctx, "", manifest(`{}`), false)
	want(t, apierrors.IsInvalid, err)
	_, err = c.Patch(ctx, m.key, client.Patch{Type: types.MergePatchType, Data: []byte(`{}`), Force: true}, client.WriteOptions{})
	want(t, apierrors.IsInvalid, err)
	for _, bad := range []string{
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","managedFields":[{}]}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"dota":{}}`,
		`{"metadata":{"name":"a"}}`, `{}`, `null`, ``, // an empty configuration would give up all that its manager owns
		`[]`, `{`,
	} {
		_, err = m.apply(ctx, "x", bad, false)
		want(t, apierrors.IsBadRequest, err)
	}
	_, err = c.Get(ctx, m.key)
	want(t, apierrors.IsNotFound, err)

	made := must[api.Object](t)(m.apply(ctx, "x", manifest(`{"a":"1","b":"1"}`), false)).(*corev1.ConfigMap)
	if made.UID == "" || made.Data["a"] != "1" || entries(made) != "x Apply" {
		t.Fatalf("%+v", made)
	}
	if again := must[api.Object](t)(m.apply(ctx, "x", manifest(`{"a":"1","b":"1"}`), false)); again.GetResourceVersion() != made.ResourceVersion {
		t.Fatal("applying the same again has changed something")
	}
	// Another manager: equal values are shared, a different value is a conflict that names the first manager.
	must[api.Object](t)(m.apply(ctx, "y", manifest(`{"a":"1","c":"1"}`), false))
	_, err = m.apply(ctx, "y", manifest(`{"a":"1","b":"2","c":"1"}`), false)
	want(t, apierrors.IsConflict, err)
	if st := err.(apierrors.APIStatus).Status(); !strings.Contains(st.Message, `"x"`) || st.Details == nil || len(st.Details.Causes) != 1 || //nolint:errorlint // the contract is that it is one
		st.Details.Causes[0].Type != metav1.CauseTypeFieldManagerConflict || st.Details.Causes[0].Field != ".data.b" {
		t.Fatalf("%+v", st)
	}
	taken := must[api.Object](t)(m.apply(ctx, "y", manifest(`{"b":"2","c":"1"}`), true)).(*corev1.ConfigMap)
	if fmt.Sprint(taken.Data) != "map[a:1 b:2 c:1]" {
		t.Fatalf("taken over: %v", taken.Data)
	}
	// A field that a manager no longer applies is removed, unless another manager owns it.
	left := must[api.Object](t)(m.apply(ctx, "x", manifest(`{}`), false)).(*corev1.ConfigMap)
	if fmt.Sprint(left.Data) != "map[b:2 c:1]" {
		t.Fatalf("given up: %v", left.Data)
	}
	// An update is recorded as a manager too, and takes fields over without a conflict.
	left = left.DeepCopy()
	left.Data["c"], left.ManagedFields = "9", nil // as a client does that does not know managedFields
	now := must[api.Object](t)(c.Update(ctx, left, client.WriteOptions{FieldManager: "z"}))
	if got := entries(now); !strings.Contains(got, "y Apply") || !strings.Contains(got, "z Update") {
		t.Fatalf("managers: %s", got)
	}
	_, err = m.apply(ctx, "y", manifest(`{"b":"2","c":"1"}`), false)
	want(t, apierrors.IsConflict, err)
	_, err = c.Patch(ctx, m.key, client.Patch{Type: types.ApplyPatchType, Data: []byte(manifest(`{"d":"1"}`))}, client.WriteOptions{FieldManager: "w", DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	if still := must[api.Object](t)(c.Get(ctx, m.key)).(*corev1.ConfigMap); still.Data["d"] != "" || strings.Contains(entries(still), "w") {
		t.Fatalf("a dry run changed it: %+v", still)
	}

	// An object that was never applied has no managedFields.
	plain := must[api.Object](t)(c.Create(ctx, configMap("b", map[string]string{"a": "1"}), client.WriteOptions{FieldManager: "z"})).(*corev1.ConfigMap).DeepCopy()
	plain.Data["a"] = "2"
	if now := must[api.Object](t)(c.Update(ctx, plain, client.WriteOptions{FieldManager: "z"})); len(now.GetManagedFields()) != 0 {
		t.Fatalf("managers of what nobody applied: %s", entries(now))
	}
	// The first apply records the fields that existed before as another manager's.
	m.key = cmKey("b")
	_, err = m.apply(ctx, "x", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"},"data":{"a":"3"}}`, false)
	want(t, apierrors.IsConflict, err)
	if !strings.Contains(err.Error(), "before-first-apply") {
		t.Fatal(err)
	}
}

func applyingLists(t *testing.T, ctx context.Context, c client.Interface) {
	m := manager{c, client.Key{Kind: api.Deployments, Namespace: "default", Name: "web"}}
	manifest := func(spec string) string {
		return `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":` + spec + `}`
	}
	const all = `{"replicas":2,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"creationTimestamp":null,"labels":{"app":"web"}},"spec":{"containers":[
		{"name":"a","image":"a:1","ports":[{"containerPort":80},{"containerPort":80,"protocol":"UDP"}]},{"name":"b","image":"b:1"}]}}}`
	made := must[api.Object](t)(m.apply(ctx, "x", manifest(all), false)).(*appsv1.Deployment)
	if made.Generation != 1 || len(made.Spec.Template.Spec.Containers[0].Ports) != 2 {
		t.Fatalf("%+v", made.Spec)
	}
	must[api.Object](t)(m.apply(ctx, "z", manifest(all), false)) // the same values, so no conflict
	must[api.Object](t)(m.apply(ctx, "z", manifest(`{}`), false))
	must[api.Object](t)(m.apply(ctx, "y", manifest(`{"template":{"spec":{"containers":[{"name":"b","env":[{"name":"E","value":"1"}]}]}}}`), false))
	_, err := m.apply(ctx, "y", manifest(`{"replicas":3}`), false)
	want(t, apierrors.IsConflict, err)
	// The owner gives a field up, another manager takes it.
	must[api.Object](t)(m.apply(ctx, "x", manifest(strings.Replace(all, `"replicas":2,`, "", 1)), false))
	now := must[api.Object](t)(m.apply(ctx, "y", manifest(`{"replicas":3}`), false)).(*appsv1.Deployment)
	cs := now.Spec.Template.Spec.Containers
	if *now.Spec.Replicas != 3 || len(cs) != 2 || cs[1].Image != "b:1" || len(cs[1].Env) != 0 || len(cs[0].Ports) != 2 {
		t.Fatalf("%+v", now.Spec)
	}
	// The status has managers of its own, and an apply of the object does not reach it.
	st, err := c.Patch(ctx, m.key, client.Patch{Type: types.ApplyPatchType, Data: []byte(manifest(`{"replicas":9}`)[:len(manifest(`{"replicas":9}`))-1] + `,"status":{"replicas":3}}`)},
		client.WriteOptions{FieldManager: "s", Subresource: "status"})
	if err != nil {
		t.Fatal(err)
	}
	if d := st.(*appsv1.Deployment); *d.Spec.Replicas != 3 || d.Status.Replicas != 3 || !strings.Contains(entries(d), "s Apply status") {
		t.Fatalf("replicas %d, %d in the status; %s", *d.Spec.Replicas, d.Status.Replicas, entries(d))
	}
	d := must[api.Object](t)(m.apply(ctx, "x", manifest(strings.Replace(all, `"replicas":2,`, "", 1)), false)).(*appsv1.Deployment)
	if d.Status.Replicas != 3 {
		t.Fatalf("the status was lost: %+v", d.Status)
	}
}
