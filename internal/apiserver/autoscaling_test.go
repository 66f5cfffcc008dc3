package apiserver_test

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

const (
	autoscalersPath   = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
	autoscalersPathV1 = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
	autoscalerBody    = `{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":"web"},"spec":{"minReplicas":MIN,"maxReplicas":4,
		"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"}METRICS}}`
)

func autoscalerOf(least, metrics string) string {
	return strings.NewReplacer("MIN", least, "METRICS", metrics).Replace(autoscalerBody)
}

// What no autoscaler can be is refused, with the field's path.
func TestAutoscalersThatAreRefused(t *testing.T) {
	c := start(t)
	for _, x := range []struct{ least, metrics, want string }{
		{"5", "", "spec.maxReplicas: Invalid value: 4: must be greater than or equal to `minReplicas`"},
		{"0", "", "spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero replicas"},
		{"1", `,"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":0}}}]`,
			"spec.metrics[0].resource.target.averageUtilization: Invalid value: 0: must be greater than 0"},
		{"1", `,"behavior":{"scaleUp":{"policies":[{"type":"Pods","value":1,"periodSeconds":4000}]}}`,
			"spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 4000: must be less than or equal to 1800"},
		{"1", `,"scaleInterval":0,"metrics":{}`, "spec.scaleInterval: expected a whole number of seconds, at least 1"},
	} {
		if code, body := c.do(c.root(), "POST", autoscalersPath, autoscalerOf(x.least, x.metrics)); code/100 != 4 || !strings.Contains(body, strings.ReplaceAll(x.want, `"`, `\"`)) {
			t.Errorf("%d %s\nwant %s", code, body, x.want)
		}
	}
	const external = `,"metrics":[{"type":"External","external":{"metric":{"name":"q"},"target":{"type":"AverageValue","averageValue":"1"}}}]`
	if code, body := c.do(c.root(), "POST", autoscalersPath, autoscalerOf("0", external)); code != 201 {
		t.Errorf("to zero with an external metric: %d %s", code, body)
	}
}

// All versions are the same objects; v1 keeps in annotations what it cannot say, and loses nothing.
func TestAutoscalerVersions(t *testing.T) {
	c := start(t)
	const metrics = `,"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":60}}},
		{"type":"Resource","resource":{"name":"memory","target":{"type":"AverageValue","averageValue":"100Mi"}}}],
		"behavior":{"scaleDown":{"stabilizationWindowSeconds":0}}`
	if code, body := c.do(c.root(), "POST", autoscalersPath, autoscalerOf("2", metrics)); code != 201 {
		t.Fatal(code, body)
	}
	var v1 autoscalingv1.HorizontalPodAutoscaler
	_, body := c.do(c.root(), "GET", autoscalersPathV1+"/web", "")
	if err := json.Unmarshal([]byte(body), &v1); err != nil || v1.APIVersion != "autoscaling/v1" || *v1.Spec.TargetCPUUtilizationPercentage != 60 ||
		!strings.Contains(v1.Annotations["autoscaling.alpha.kubernetes.io/metrics"], `"targetAverageValue":"100Mi"`) ||
		!strings.Contains(v1.Annotations["autoscaling.alpha.kubernetes.io/behavior"], `"StabilizationWindowSeconds":0`) {
		t.Fatalf("%v %s", err, body)
	}
	v1.Spec.MaxReplicas, v1.Spec.TargetCPUUtilizationPercentage = 7, new(int32(70))
	raw, err := json.Marshal(v1)
	if err != nil {
		t.Fatal(err)
	}
	if code, body := c.do(c.root(), "PUT", autoscalersPathV1+"/web", string(raw)); code != 200 {
		t.Fatal(code, body)
	}
	var v2 autoscalingv2.HorizontalPodAutoscaler
	_, body = c.do(c.root(), "GET", autoscalersPath+"/web", "")
	if err := json.Unmarshal([]byte(body), &v2); err != nil || v2.Spec.MaxReplicas != 7 || len(v2.Spec.Metrics) != 2 || len(v2.Annotations) != 0 || v2.Generation != 2 ||
		*v2.Spec.Behavior.ScaleDown.StabilizationWindowSeconds != 0 || *v2.Spec.Metrics[1].Resource.Target.AverageUtilization != 70 {
		t.Fatalf("%v %s", err, body)
	}
	_, body = c.do(c.root(), "GET", "/apis/autoscaling/v2beta2/namespaces/default/horizontalpodautoscalers/web", "")
	if !strings.Contains(body, `"apiVersion":"autoscaling/v2beta2"`) || !strings.Contains(body, `"maxReplicas":7`) {
		t.Error(body)
	}
	_, body = c.do(c.root(), "GET", "/apis/autoscaling", "")
	if !strings.Contains(body, `"preferredVersion":{"groupVersion":"autoscaling/v2","version":"v2"}`) {
		t.Error(body)
	}
	for _, path := range []string{autoscalersPath, autoscalersPathV1} {
		_, body = c.do(c.root(), "GET", path, "", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
		if !strings.Contains(body, `"cells":["web","Deployment/web","memory: \u003cunknown\u003e/100Mi, cpu: \u003cunknown\u003e/70%","2",7,0,`) {
			t.Error(body)
		}
	}
}

// Who watches one version is told in it, whatever the others watch.
func TestAutoscalerVersionsWatched(t *testing.T) {
	c := start(t)
	watches := map[string]*bufio.Scanner{}
	for _, version := range []string{"v1", "v2beta2", "v2"} {
		watches[version] = c.watch("/apis/autoscaling/" + version + "/horizontalpodautoscalers?watch=1")
	}
	if code, body := c.do(c.root(), "POST", autoscalersPath, autoscalerOf("2", "")); code != 201 {
		t.Fatal(code, body)
	}
	for version, lines := range watches {
		if !lines.Scan() || !strings.Contains(lines.Text(), `"apiVersion":"autoscaling/`+version+`"`) {
			t.Errorf("%s: %s", version, lines.Text())
		}
	}
}

// The seeds' manifests mean what the seeds say.
func TestSeedAutoscalers(t *testing.T) {
	c := start(t)
	post := func(file, path string) (v2 autoscalingv2.HorizontalPodAutoscaler, body string) {
		t.Helper()
		manifest, err := os.ReadFile("../../testdata/dialects/" + file)
		if err != nil {
			t.Fatal(err)
		}
		code, body := c.do(c.root(), "POST", path+"?fieldValidation=Strict", string(manifest), "Content-Type", "application/yaml")
		if code != 201 {
			t.Fatal(code, body)
		}
		var name struct{ Metadata struct{ Name string } }
		if err := json.Unmarshal([]byte(body), &name); err != nil {
			t.Fatal(err)
		}
		_, body = c.do(c.root(), "GET", autoscalersPath+"/"+name.Metadata.Name, "")
		if err := json.Unmarshal([]byte(body), &v2); err != nil {
			t.Fatal(err)
		}
		return v2, body
	}
	x, body := post("x-hpa.yaml", autoscalersPathV1)
	if up, down := x.Spec.Behavior.ScaleUp, x.Spec.Behavior.ScaleDown; *x.Spec.Metrics[0].Resource.Target.AverageUtilization != 25 || len(up.Policies) != 1 ||
		up.Policies[0] != down.Policies[0] || up.Policies[0].Value != 1 || up.Policies[0].PeriodSeconds != 10 || *down.StabilizationWindowSeconds != 0 ||
		x.Spec.ScaleTargetRef != (autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs"}) {
		t.Error(body)
	}
	a, body := post("a-hpa.yaml", "/apis/autoscaling/v2beta2/namespaces/default/horizontalpodautoscalers")
	if len(a.Spec.Metrics) != 2 || a.Spec.Behavior.ScaleUp.Policies[0].Value != 1 || len(a.Spec.Behavior.ScaleUp.Policies) != 1 ||
		a.Spec.Behavior.ScaleDown.Policies[0].Type != autoscalingv2.PercentScalingPolicy || a.Annotations["minik8s.io/utilization-basis"] != "requests-or-capacity" {
		t.Error(body)
	}
}

// Who may read a namespace may read its autoscalers, and change none.
func TestAutoscalersBelongToTheirNamespace(t *testing.T) {
	c := start(t)
	account := c.user("system:serviceaccount:default:robot", "system:serviceaccounts", "system:serviceaccounts:default")
	for path, want := range map[string]int{autoscalersPath: 200, autoscalersPathV1: 200, strings.Replace(autoscalersPath, "default", "kube-system", 1): 403} {
		if code, body := c.do(account, "GET", path, ""); code != want {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if code, body := c.do(account, "POST", autoscalersPathV1, autoscalerOf("1", "")); code != 403 {
		t.Errorf("%d %s", code, body)
	}
}
