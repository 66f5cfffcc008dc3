package podspec_test

import (
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"minik8s/internal/api/defaults"
	"minik8s/internal/api/podspec"
)

func specOf(t *testing.T, text string) *corev1.PodSpec {
	t.Helper()
	spec := &corev1.PodSpec{}
	if err := yaml.UnmarshalStrict([]byte(text), spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

func TestQOSClass(t *testing.T) {
	for resources, want := range map[string]corev1.PodQOSClass{
		`{}`:                               corev1.PodQOSBestEffort,
		`{limits: {cpu: 0}}`:               corev1.PodQOSBestEffort,
		`{limits: {cpu: 1}}`:               corev1.PodQOSBurstable,
		`{requests: {memory: 1Mi}}`:        corev1.PodQOSBurstable,
		`{limits: {cpu: 1, memory: 64Mi}}`: corev1.PodQOSGuaranteed,
		`{limits: {cpu: 1, memory: 64Mi}, requests: {cpu: 1000m}}`: corev1.PodQOSGuaranteed,
		`{limits: {cpu: 1, memory: 64Mi}, requests: {cpu: 1m}}`:    corev1.PodQOSBurstable,
		`{limits: {cpu: 1, memory: 64Mi}, requests: {cpu: 0}}`:     corev1.PodQOSBurstable, // zero is no request
		`{requests: {cpu: 0, memory: 0}}`:                          corev1.PodQOSBestEffort,
	} {
		spec := specOf(t, "containers: [{name: c, resources: "+resources+"}]")
		if got := podspec.QOSClass(spec); got != want {
			t.Errorf("%s: got %s, want %s", resources, got, want)
		}
		defaults.PodSpec(spec)
		if got := podspec.QOSClass(spec); got != want {
			t.Errorf("%s, filled in: got %s, want %s", resources, got, want)
		}
	}
}

func TestQOSClassOfSeveral(t *testing.T) {
	const all = "resources: {limits: {cpu: 1, memory: 1Gi}}"
	for text, want := range map[string]corev1.PodQOSClass{
		"containers: [{name: a, " + all + "}, {name: b, " + all + "}]":                 corev1.PodQOSGuaranteed,
		"containers: [{name: a, " + all + "}, {name: b}]":                              corev1.PodQOSBurstable,
		"{containers: [{name: a, " + all + "}], initContainers: [{name: i}]}":          corev1.PodQOSBurstable,
		"{containers: [{name: a, " + all + "}], ephemeralContainers: [{name: debug}]}": corev1.PodQOSGuaranteed,
	} {
		if got := podspec.QOSClass(specOf(t, text)); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func TestRequests(t *testing.T) {
	const mi = 1 << 20
	for _, c := range []struct {
		name, spec string
		want       podspec.Amounts
	}{
		{"containers add up", `
containers: [{name: a, resources: {requests: {cpu: 100m, memory: 10Mi}}}, {name: b, resources: {requests: {cpu: 1, example.com/gpu: 2}}}]`,
			podspec.Amounts{"cpu": 1100, "memory": 10 * mi, "example.com/gpu": 2}},
		{"an init container that needs more", `
initContainers: [{name: i, resources: {requests: {cpu: 2}}}, {name: j, resources: {requests: {cpu: 1, memory: 1Mi}}}]
containers: [{name: a, resources: {requests: {cpu: 1, memory: 5Mi}}}]`,
			podspec.Amounts{"cpu": 2000, "memory": 5 * mi}},
		{"sidecars go on; init containers run beside those before them", `
initContainers:
- {name: s, restartPolicy: Always, resources: {requests: {cpu: 50m}}}
- {name: i, resources: {requests: {cpu: 400m}}}
- {name: t, restartPolicy: Always, resources: {requests: {cpu: 50m}}}
containers: [{name: a, resources: {requests: {cpu: 200m}}}]
overhead: {cpu: 1m}`,
			podspec.Amounts{"cpu": 451}},
		{"of the pod as a whole", `
containers: [{name: a, resources: {requests: {cpu: 200m, memory: 1Mi}}}]
resources: {requests: {cpu: 3}}
overhead: {cpu: 1m}`,
			podspec.Amounts{"cpu": 3001, "memory": mi}},
		{"more than can be counted", `containers: [{name: a, resources: {requests: {cpu: 1E}}}]`, podspec.Amounts{"cpu": podspec.MaxAmount}},
		{"nothing", `containers: [{name: a}]`, podspec.Amounts{}},
	} {
		if got := podspec.Requests(specOf(t, c.spec)); !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestLimit(t *testing.T) {
	for _, c := range []struct {
		spec    string
		want    int64
		limited bool
	}{
		{`containers: [{name: a, resources: {limits: {cpu: 1}}}, {name: b}]`, 0, false},
		{`containers: [{name: a, resources: {limits: {cpu: 1}}}, {name: b, resources: {limits: {cpu: 0}}}]`, 0, false},
		{`{containers: [{name: a, resources: {limits: {cpu: 1}}}, {name: b, resources: {limits: {cpu: 500m}}}], overhead: {cpu: 1m}}`, 1501, true},
		{`{initContainers: [{name: i, resources: {limits: {cpu: 4}}}], containers: [{name: a, resources: {limits: {cpu: 1}}}]}`, 4000, true},
		{`{initContainers: [{name: i}], containers: [{name: a, resources: {limits: {cpu: 1}}}]}`, 0, false},
		{`{initContainers: [{name: i, resources: {limits: {cpu: 3}}}, {name: s, restartPolicy: Always}], containers: [{name: a, resources: {limits: {cpu: 1}}}]}`, 0, false},
		{`{initContainers: [{name: i, resources: {limits: {cpu: 3}}}, {name: s, restartPolicy: Always, resources: {limits: {cpu: 1}}}], containers: [{name: a, resources: {limits: {cpu: 1}}}]}`, 3000, true},
		{`{containers: [{name: a}], resources: {limits: {cpu: 2}}}`, 2000, true},
	} {
		if got, limited := podspec.Limit(specOf(t, c.spec), corev1.ResourceCPU); got != c.want || limited != c.limited {
			t.Errorf("%s: %d, %t, want %d, %t", c.spec, got, limited, c.want, c.limited)
		}
	}
}

func TestWhichContainer(t *testing.T) {
	for _, x := range []struct{ spec, name, want, err string }{
		{"containers: [{name: a}]", "", "a", ""},
		{"{containers: [{name: a}], initContainers: [{name: i}]}", "", "a", ""},
		{"{containers: [{name: a}], initContainers: [{name: i}], ephemeralContainers: [{name: e}]}", "i", "i", ""},
		{"{containers: [{name: a}], initContainers: [{name: i}], ephemeralContainers: [{name: e}]}", "e", "e", ""},
		{"containers: [{name: a}]", "b", "", "container b is not valid for pod p"},
		{"containers: [{name: a}, {name: b}]", "", "", "a container name must be specified for pod p, choose one of: [a b]"},
		{"{containers: [{name: a}, {name: b}], initContainers: [{name: i}, {name: j}]}", "", "",
			"a container name must be specified for pod p, choose one of: [a b] or one of the init containers: [i j]"},
	} {
		pod := &corev1.Pod{Spec: *specOf(t, x.spec)}
		pod.Name = "p"
		got, err := podspec.ChooseContainer(pod, x.name)
		if text := fmt.Sprint(err); got != x.want || (x.err == "") != (err == nil) || err != nil && text != x.err {
			t.Errorf("%s, %q: %q, %v", x.spec, x.name, got, err)
		}
	}
	pod := &corev1.Pod{Spec: *specOf(t, "containers: [{name: a}, {name: b}]")}
	if got := podspec.DefaultContainer(pod); got != "" {
		t.Errorf("of two: %q", got)
	}
	pod.Annotations = map[string]string{"kubectl.kubernetes.io/default-container": "b"}
	if got := podspec.DefaultContainer(pod); got != "b" {
		t.Errorf("annotated: %q", got)
	}
}
