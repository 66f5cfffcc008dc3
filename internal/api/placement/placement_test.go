package placement

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

func fromYAML[T any](t *testing.T, text string) *T {
	t.Helper()
	v := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestSelects(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"disk": "ssd", "cores": "8", "rack": "many"}}}
	terms := func(terms string) string {
		return "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [" + terms + "]}}}"
	}
	expr := func(text string) string { return terms("{matchExpressions: [{" + text + "}]}") }
	name := func(text string) string { return terms("{matchFields: [{key: metadata.name, " + text + "}]}") }
	for _, x := range []struct {
		name, spec string
		want       bool
	}{
		{"nothing asked", "{}", true},
		{"nodeSelector", "nodeSelector: {disk: ssd}", true},
		{"nodeSelector, another value", "nodeSelector: {disk: hdd}", false},
		{"nodeSelector, no such label", "nodeSelector: {gpu: ''}", false},
		{"In", expr("key: disk, operator: In, values: [hdd, ssd]"), true},
		{"In, no such label", expr("key: gpu, operator: In, values: ['']"), false},
		{"NotIn", expr("key: disk, operator: NotIn, values: [ssd]"), false},
		{"NotIn, no such label", expr("key: gpu, operator: NotIn, values: [a]"), true},
		{"Exists", expr("key: disk, operator: Exists"), true},
		{"DoesNotExist", expr("key: disk, operator: DoesNotExist"), false},
		{"Gt", expr("key: cores, operator: Gt, values: ['7']"), true},
		{"Gt, equal", expr("key: cores, operator: Gt, values: ['8']"), false},
		{"Lt", expr("key: cores, operator: Lt, values: ['9']"), true},
		{"Lt, no number", expr("key: rack, operator: Lt, values: ['9']"), false},
		{"an unknown operator", expr("key: cores, operator: About, values: ['8']"), false},
		{"name", name("operator: In, values: [n1]"), true},
		{"another name", name("operator: In, values: [n2]"), false},
		{"not that name", name("operator: NotIn, values: [n1]"), false},
		{"terms are alternatives", terms("{matchExpressions: [{key: gpu, operator: Exists}]}, {matchExpressions: [{key: disk, operator: Exists}]}"), true},
		{"all of a term", terms("{matchExpressions: [{key: gpu, operator: Exists}, {key: disk, operator: Exists}]}"), false},
		{"an empty term", terms("{}"), false},
		{"selector and affinity", "nodeSelector: {disk: hdd}\n" + expr("key: disk, operator: Exists"), false},
	} {
		if got := Selects(fromYAML[corev1.PodSpec](t, x.spec), node); got != x.want {
			t.Errorf("%s: %v", x.name, got)
		}
	}
}

func TestPins(t *testing.T) {
	const required = "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
	const a, b = "{matchFields: [{key: metadata.name, operator: In, values: [a]}]}", "{matchFields: [{key: metadata.name, operator: In, values: [b]}]}"
	for _, x := range []struct {
		name, spec string
		want       []string
	}{
		{"any node", "{}", nil},
		{"one", required + "[" + a + "]}}}", []string{"a"}},
		{"two, one of them twice", required + "[" + a + ", " + b + ", " + a + "]}}}", []string{"a", "b"}},
		{"one, or some others", required + "[" + a + ", {matchExpressions: [{key: disk, operator: Exists}]}]}}}", nil},
	} {
		if got := Pins(fromYAML[corev1.PodSpec](t, x.spec)); !slices.Equal(got, x.want) {
			t.Errorf("%s: %v", x.name, got)
		}
	}
}

func TestTaints(t *testing.T) {
	for _, x := range []struct {
		name, tolerations string
		comes, stays      bool
		taint             corev1.Taint
	}{
		{"none", "[]", false, true, corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoSchedule}},
		{"none, NoExecute", "[]", false, false, corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoExecute}},
		{"none, a mere preference", "[]", true, true, corev1.Taint{Key: "k", Effect: corev1.TaintEffectPreferNoSchedule}},
		{"everything", "[{operator: Exists}]", true, true, corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoExecute}},
		{"the key", "[{key: k, operator: Exists}]", true, true, corev1.Taint{Key: "k", Value: "v", Effect: corev1.TaintEffectNoExecute}},
		{"the value", "[{key: k, value: v}]", true, true, corev1.Taint{Key: "k", Value: "v", Effect: corev1.TaintEffectNoExecute}},
		{"another value", "[{key: k, value: w}]", false, false, corev1.Taint{Key: "k", Value: "v", Effect: corev1.TaintEffectNoExecute}},
		{"another effect", "[{key: k, operator: Exists, effect: NoSchedule}]", false, false, corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoExecute}},
		{"for a while", "[{key: k, operator: Exists, tolerationSeconds: 5}]", true, true, corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoExecute}},
	} {
		list, taints := *fromYAML[[]corev1.Toleration](t, x.tolerations), []corev1.Taint{x.taint}
		if comes, stays := Untolerated(list, taints) < 0, Evicts(list, taints) < 0; comes != x.comes || stays != x.stays {
			t.Errorf("%s: comes %v, stays %v", x.name, comes, stays)
		}
	}
}
