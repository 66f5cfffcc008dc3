package decode

import (
	"strings"
	"testing"

	"minik8s/internal/api"
	"minik8s/internal/api/dialect"
)

// Every mistake is named by its path, in the words of a manifest, and none by Go's.
func TestDecodeMistakes(t *testing.T) {
	const (
		quantity = "expected a quantity such as 2, 500m or 1Gi"
		quoted   = `got the number 8080 (a string is written "8080")`
	)
	for _, x := range []struct {
		name string
		kind *api.Kind
		body string
		want string
	}{
		{"a quantity", api.Pods, `{"spec":{"containers":[{"name":"a"},{"name":"b","resources":{"limits":{"cpu":"much"}}}]}}`,
			`spec.containers[1].resources.limits.cpu: ` + quantity + `, got the string "much"`},
		{"a quantity of a resource with a domain", api.Pods, `{"spec":{"containers":[{"resources":{"limits":{"x.io/gpu":true}}}]}}`,
			`spec.containers[0].resources.limits[x.io/gpu]: ` + quantity + `, got true`},
		{"behind embedded types", api.Pods, `{"spec":{"containers":[{"readinessProbe":{"httpGet":{"port":80,"httpHeaders":[{"name":"a","value":8080}]}}}]}}`,
			`spec.containers[0].readinessProbe.httpGet.httpHeaders[0].value: expected a string, ` + quoted},
		{"deep below a volume", api.Pods, `{"spec":{"volumes":[{"projected":{"sources":[{"downwardAPI":{"items":[{"path":{}}]}}]}}]}}`,
			`spec.volumes[0].projected.sources[0].downwardAPI.items[0].path: expected a string, got an object`},
		{"no object", api.Pods, `{"metadata":"web"}`, `metadata: expected an object, got the string "web"`},
		{"no list", api.Pods, `{"spec":{"containers":{"name":"a"}}}`, `spec.containers: expected a list, got an object`},
		{"a number in quotes", api.Deployments, `{"spec":{"replicas":"3"}}`, `spec.replicas: expected a whole number, got the string "3"`},
		{"half a number", api.Deployments, `{"spec":{"replicas":1.5}}`, `spec.replicas: expected a whole number, got the number 1.5`},
		{"too large a number", api.Deployments, `{"spec":{"replicas":3000000000}}`, `spec.replicas: expected a whole number of at most 32 bits, got the number 3000000000`},
		{"no boolean", api.Pods, `{"spec":{"hostNetwork":"yes"}}`, `spec.hostNetwork: expected true or false, got the string "yes"`},
		{"a boolean for a string", api.ConfigMaps, `{"data":{"on":true}}`, `data.on: expected a string, got true (a string is written "true")`},
		{"number or string", api.Deployments, `{"spec":{"strategy":{"rollingUpdate":{"maxSurge":[]}}}}`,
			`spec.strategy.rollingUpdate.maxSurge: expected a whole number or a string, got a list`},
		{"a time", api.Pods, `{"metadata":{"creationTimestamp":"noon"}}`, `metadata.creationTimestamp: expected a time such as 2006-01-02T15:04:05Z, got the string "noon"`},
		{"bytes are not repeated", api.Secrets, `{"data":{"password":"hun!ter2"}}`, `data.password: expected a string in base64, got another`},
		{"the whole", api.Pods, `[]`, `the body is not a valid Pod: expected an object, got a list`},
		{"the whole, in YAML", api.ConfigMaps, `just words`, `the body is not a valid ConfigMap: expected an object, got the string "just words"`},
		{"all at once, in the order of their names", api.Pods, "metadata: {name: 8080, labels: []}\nspec: {priority: high}",
			`metadata.labels: expected an object, got a list; metadata.name: expected a string, ` + quoted + `; spec.priority: expected a whole number, got the string "high"`},
		{"too many", api.ConfigMaps, `{"data":{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"k":1,"l":1}}`, `; and 2 more`},
		{"a long string", api.Pods, `{"spec":"` + strings.Repeat("x", 1000) + `"}`, `got the string "` + strings.Repeat("x", 60) + `..."`},
		{"no JSON", api.ConfigMaps, "{\"metadata\":\n {\"name\" \"a\"}}", `the body is not a valid ConfigMap: line 2, column 10: invalid character '"' after object key`},
		{"half a document", api.ConfigMaps, `{"metadata":`, `unexpected end of JSON input`},
		{"half a document, of a kind with dialects", api.Pods, `{"metadata":`, `the body is not a valid Pod: it ends too early`},
		{"a key given twice, wrong and right", api.ConfigMaps, `{"data":{"a":1},"data":{"a":"1"}}`, `data: number does not belong there`},
	} {
		t.Run(x.name, func(t *testing.T) {
			_, _, err := Manifest(x.kind, dialect.For(x.kind), []byte(x.body), "Strict")
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Fatalf("%v\nwant %s", err, x.want)
			}
			for _, word := range []string{"v1.", "interface", "Handler", "VolumeSource", ": :", "regular expression"} {
				if strings.Contains(err.Error(), word) {
					t.Errorf("%s: in words of Go", err)
				}
			}
		})
	}
}

// What the decoder reads must not be called a mistake when another part of the document is wrong.
func TestNoMistakes(t *testing.T) {
	const good = `
metadata: {name: web, labels: {a: b}, creationTimestamp: null, managedFields: [{fieldsV1: {"f:a": {}}}]}
spec:
  volumes: [{emptyDir: {sizeLimit: 1Gi}}, {name: x, hostPath: null}]
  containers:
  - {name: a, resources: {limits: {cpu: 1, memory: 5e3, x.io/gpu: "2"}}, livenessProbe: {httpGet: {port: http}, periodSeconds: 3}}
  - {name: b, livenessProbe: {httpGet: {port: 80}}, unknown: [{}]}
  restartPolicy: `
	_, _, err := Manifest(api.Pods, nil, []byte(good+"5"), "Ignore")
	if err == nil || !strings.HasSuffix(err.Error(), `not a valid Pod: spec.restartPolicy: expected a string, got the number 5 (a string is written "5")`) {
		t.Error(err)
	}
	if _, _, err := Manifest(api.Pods, nil, []byte(good+"Never"), "Ignore"); err != nil {
		t.Error(err)
	}
}
