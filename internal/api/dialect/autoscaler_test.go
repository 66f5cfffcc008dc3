package dialect

import (
	"strings"
	"testing"

	"minik8s/internal/api"
)

// The first seed system's words in the newest version, in which ctl sends a manifest that names none.
func TestAutoscaler(t *testing.T) {
	const head = `{"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v2","metadata":{"name":"a"},"spec":{"scaleTargetRef":{"kind":"ReplicaSet","apiVersion":"apps/v1","name":"rs"},%}}`
	const capacity = `"metadata":{"name":"a","annotations":{"minik8s.io/utilization-basis":"capacity","minik8s.io/sync-period":"15s"}}`
	const one = `{"stabilizationWindowSeconds":0,"selectPolicy":"Max","policies":[{"type":"Pods","value":1,"periodSeconds":15}]}`
	const steps = `"maxReplicas":1,"behavior":{"scaleUp":` + one + `,"scaleDown":` + one + `},`
	for _, x := range []struct{ name, in, metadata, want string }{
		{"memory", `"metrics":{"MemUtilizationPercentage":60}`, capacity,
			steps + `"metrics":[{"type":"Resource","resource":{"name":"memory","target":{"type":"Utilization","averageUtilization":60}}}]`},
		{"half a percent of a core", `"metrics":{"CPUUtilizationPercentage":0.5}`, capacity,
			steps + `"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"AverageValue","averageValue":"5m"}}}]`},
		{"half a percent of memory", `"metrics":{"MemUtilizationPercentage":"0.5"}`, capacity,
			steps + `"metrics":[{"type":"Resource","resource":{"name":"memory","target":{"type":"Utilization","averageUtilization":1}}}]`},
		{"cpu before memory", `"metrics":{"MemUtilizationPercentage":60,"CPUUtilizationPercentage":25}`,
			`"metadata":{"name":"a","annotations":{"minik8s.io/utilization-basis":"capacity","minik8s.io/sync-period":"15s","minik8s.io/leading-metric":"cpu"}}`,
			steps + `"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":25}}},` +
				`{"type":"Resource","resource":{"name":"memory","target":{"type":"Utilization","averageUtilization":60}}}]`},
		{"no metric", `"metrics":{}`, capacity, steps + `"metrics":null`},
		{"a list is Kubernetes'", `"metrics":[]`, `"metadata":{"name":"a"}`, `"metrics":[]`},
	} {
		t.Run(x.name, func(t *testing.T) {
			doc := parseJSON(t, []byte(strings.Replace(head, "%", x.in, 1)))
			if _, err := For(api.HorizontalPodAutoscalers)(doc); err != nil {
				t.Fatal(err)
			}
			want := strings.Replace(strings.Replace(head, "%", x.want, 1), `"metadata":{"name":"a"}`, x.metadata, 1)
			same(t, doc, parseJSON(t, []byte(want)))
		})
	}
}

func TestAutoscalerMistakes(t *testing.T) {
	for manifest, want := range map[string]string{
		`{"metadata":{"namespace":"a"},"spec":{"scaleTargetRef":{"metadata":{"name":"rs","namespace":"b"}}}}`: "spec.scaleTargetRef.metadata.namespace: it is b, and the autoscaler's namespace is a",
		`{"spec":{"scaleTargetRef":{"name":"x","metadata":{"name":"rs"}}}}`:                                   `spec.scaleTargetRef.metadata.name: it is "rs" here and "x" in spec.scaleTargetRef`,
		`{"spec":{"scaleInterval":0}}`:                             "spec.scaleInterval: expected a whole number of seconds, at least 1, got 0",
		`{"spec":{"scaleInterval":1.5}}`:                           "spec.scaleInterval: expected",
		`{"spec":{"metrics":{"GpuUtilizationPercentage":1}}}`:      "spec.metrics.GpuUtilizationPercentage: it is not known; there are CPUUtilizationPercentage and MemUtilizationPercentage",
		`{"spec":{"metrics":{"CPUUtilizationPercentage":-1}}}`:     "spec.metrics.CPUUtilizationPercentage: expected a number of percent above 0, got -1",
		`{"spec":{"metrics":{"CPUUtilizationPercentage":"much"}}}`: "spec.metrics.CPUUtilizationPercentage: expected",
	} {
		for _, kind := range []*api.Kind{api.HorizontalPodAutoscalers, api.HorizontalPodAutoscalersV1} {
			_, err := For(kind)(parseJSON(t, []byte(manifest)))
			if !strings.HasPrefix(message(err), want) {
				t.Errorf("%s: got %q, want %q", manifest, message(err), want)
			}
		}
	}
}

// The second seed system's policies for growing count where v2beta2 has none, and only there.
func TestGrowth(t *testing.T) {
	const head = `{"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v2beta2","metadata":{"name":"a"},"spec":{"scaleTargetRef":{"kind":"ReplicaSet","apiVersion":"apps/v1","name":"rs"}%}}`
	const policies = `"policies":[{"type":"Pods","value":1,"periodSeconds":15},{"type":"Percent","value":100,"periodSeconds":60}]`
	for in, want := range map[string]string{
		``: `,"behavior":{"scaleUp":{` + policies + `}}`,
		`,"behavior":{"scaleUp":{"selectPolicy":"Min"},"scaleDown":{"selectPolicy":"Disabled"}}`: `,"behavior":{"scaleUp":{"selectPolicy":"Min",` + policies + `},"scaleDown":{"selectPolicy":"Disabled"}}`,
		`,"behavior":{"scaleUp":{"policies":[{"type":"Pods","value":4,"periodSeconds":15}]}}`:    `,"behavior":{"scaleUp":{"policies":[{"type":"Pods","value":4,"periodSeconds":15}]}}`,
	} {
		doc := parseJSON(t, []byte(strings.Replace(head, "%", in, 1)))
		if _, err := For(api.HorizontalPodAutoscalersV2beta2)(doc); err != nil {
			t.Fatal(err)
		}
		metadata := `"metadata":{"name":"a","annotations":{"minik8s.io/utilization-basis":"requests-or-capacity"}}`
		same(t, doc, parseJSON(t, []byte(strings.Replace(strings.Replace(head, "%", want, 1), `"metadata":{"name":"a"}`, metadata, 1))))
	}
}
