package apiserver_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"minik8s/internal/api"
	"minik8s/internal/registry"
)

// A node says in its status only addresses that are nobody else's: not another node's that is ready, nor where a master's API is, nor a
// Service's or a DNS object's, however it writes them. What it said before it may go on to say; a master's kubelet is believed.
func TestNodeAddresses(t *testing.T) {
	c := start(t)
	root := c.root()
	send := func(who *http.Client, method, path, body string, headers ...string) (int, string) {
		t.Helper()
		return c.do(who, method, path, body, headers...)
	}
	must := func(method, path, body string) {
		t.Helper()
		if code, b := send(root, method, path, body); code >= 300 {
			t.Fatal(path, code, b)
		}
	}
	node := func(name, address, ready, annotations string) string {
		return fmt.Sprintf(`{"metadata":{"name":%q,"annotations":{%s}},"status":{"addresses":[{"type":"InternalIP","address":%q},{"type":"Hostname","address":%q}],"conditions":[{"type":"Ready","status":%q}]}}`,
			name, annotations, address, name, ready)
	}
	const nodes, services = "/api/v1/nodes", "/api/v1/namespaces/default/services"
	must("POST", nodes, node("there", "10.0.0.2", "True", ""))
	must("POST", nodes, node("lost", "10.0.0.3", "Unknown", ""))
	must("POST", nodes, node("master", "10.0.0.4", "Unknown", `"minik8s.io/api-address":"10.0.0.5:6443"`))
	must("POST", services, `{"metadata":{"name":"web"},"spec":{"clusterIP":"10.0.0.6","ports":[{"port":80}]}}`)
	must("POST", "/apis/minik8s.io/v1/namespaces/default/dnses", `{"metadata":{"name":"names"},"spec":{"host":"a.example","serviceAddress":"10.0.0.7","paths":[{"path":"/","service":{"name":"web","port":80}}]}}`)
	refused := map[string]string{"10.0.0.2": "node there, which is ready, has it", "10.0.0.5": "the API of node master", "10.0.0.6": "service default/web has it", "10.0.0.7": "dns default/names has it"}
	n1 := c.user("system:node:n1", registry.GroupNodes)
	for address, says := range refused {
		if code, b := send(n1, "POST", nodes, node("n1", address, "True", "")); code != 403 || !strings.Contains(b, "may not claim "+address) || !strings.Contains(b, says) {
			t.Errorf("a new Node with %s: %d %s", address, code, b)
		}
	}
	if code, b := send(n1, "POST", nodes, node("n1", "10.0.0.1", "True", "")); code != 201 {
		t.Fatal(code, b)
	}
	status := nodes + "/n1/status"
	for address, says := range refused {
		for method, body := range map[string]string{"PUT": node("n1", address, "True", ""),
			"PATCH": fmt.Sprintf(`{"status":{"addresses":[{"type":"InternalIP","address":"10.0.0.1"},{"type":"ExternalIP","address":%q}]}}`, address)} {
			if code, b := send(n1, method, status, body, "Content-Type", map[string]string{"PUT": "application/json", "PATCH": "application/merge-patch+json"}[method]); code != 403 || !strings.Contains(b, says) {
				t.Errorf("%s %s: %d %s", method, address, code, b)
			}
		}
	}
	for _, address := range []string{"10.0.0.1", "10.0.0.3", "10.0.0.9", "10.0.0.9"} { // its own, a lost node's, a free one, the same
		if code, b := send(n1, "PUT", status, node("n1", address, "True", "")); code != 200 {
			t.Errorf("%s: %d %s", address, code, b)
		}
	}
	if code, b := send(c.user("system:node:m2", registry.GroupNodes, api.GroupMasterNodes), "POST", nodes, node("m2", "10.0.0.2", "True", "")); code != 201 {
		t.Errorf("a master's kubelet: %d %s", code, b)
	}
}
