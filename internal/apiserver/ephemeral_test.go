package apiserver_test

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/registry"
)

// TestEphemeralContainersAreAdded by their subresource, as kubectl debug does, and in no other way; the node then
// may read what they name.
func TestEphemeralContainersAreAdded(t *testing.T) {
	c := start(t)
	root, node := c.root(), c.user("system:node:n1", registry.GroupNodes)
	const pods = "/api/v1/namespaces/default/pods"
	const spec = `"spec":{"nodeName":"n1","containers":[{"name":"c","image":"i"}]`
	const debug = `"ephemeralContainers":[{"name":"d","image":"i","targetContainerName":"c","envFrom":[{"secretRef":{"name":"s"}}]}]`
	const secret = "/api/v1/namespaces/default/secrets/s"
	strategic := []string{"Content-Type", "application/strategic-merge-patch+json"}
	var generation int64
	for _, x := range []struct {
		name, method, path, body string
		code                     int
		says                     string
		header                   []string
	}{
		{"not in a new pod", "POST", pods, `{"metadata":{"name":"p"},` + spec + `,` + debug + `}}`, 422, "cannot be set on create", nil},
		{"the pod", "POST", pods, `{"metadata":{"name":"p"},` + spec + `}}`, 201, "", nil},
		{"not in an update", "PATCH", pods + "/p", `{"spec":{` + debug + `}}`, 422, "changed: spec.ephemeralContainers", strategic},
		{"added", "PATCH", pods + "/p/ephemeralcontainers", `{"metadata":{"labels":{"a":"b"}},"spec":{"activeDeadlineSeconds":5,` + debug + `}}`, 200, `"terminationMessagePath":"/dev/termination-log"`, strategic},
		{"another", "PATCH", pods + "/p/ephemeralcontainers", `{"spec":{"ephemeralContainers":[{"name":"e","image":"i"}]}}`, 200, `"name":"d"`, strategic},
		{"what is not served", "PATCH", pods + "/p/ephemeralcontainers", `{"spec":{"ephemeralContainers":[{"name":"f","image":"i","volumeDevices":[{"name":"v","devicePath":"/v"}]}]}}`, 422, "block devices", strategic},
		{"changed", "PATCH", pods + "/p/ephemeralcontainers", `{"spec":{"ephemeralContainers":[{"name":"d","image":"j"}]}}`, 422, "may not be changed", strategic},
		{"removed", "PUT", pods + "/p/ephemeralcontainers", `{"metadata":{"name":"p"},` + spec + `}}`, 422, "may not be removed", nil},
		{"read", "GET", pods + "/p/ephemeralcontainers", "", 200, `"name":"e"`, nil},
		{"no such way", "DELETE", pods + "/p/ephemeralcontainers", "", 405, "", nil},
		{"not in a template", "POST", "/apis/apps/v1/namespaces/default/replicasets",
			`{"metadata":{"name":"r"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},` + spec + `,` + debug + `}}}}`, 422, "not allowed in pod template", nil},
	} {
		if x.name == "added" {
			if code, _ := c.do(node, "GET", secret, ""); code != 403 {
				t.Errorf("the node reads a secret that no pod names: %d", code)
			}
		}
		code, body := c.do(root, x.method, x.path, x.body, x.header...)
		if code != x.code || !strings.Contains(body, x.says) {
			t.Errorf("%s: %d %s, want %d with %s", x.name, code, body, x.code, x.says)
		}
		if x.name == "added" || x.name == "another" {
			var p corev1.Pod
			if err := json.Unmarshal([]byte(body), &p); err != nil {
				t.Fatal(err)
			}
			if p.Generation <= generation || p.Labels != nil || p.Spec.ActiveDeadlineSeconds != nil {
				t.Errorf("%s: what else was changed: %s", x.name, body)
			}
			generation = p.Generation
		}
	}
	if code, body := c.do(node, "GET", secret, ""); code != 404 {
		t.Errorf("the node's pod names the secret now: %d %s", code, body)
	}
	if code, body := c.do(node, "PATCH", pods+"/p/ephemeralcontainers", `{}`, strategic...); code != 403 {
		t.Errorf("a node adds containers: %d %s", code, body)
	}
}
