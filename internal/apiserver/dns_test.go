package apiserver_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"minik8s/internal/api/minik8s"
	"minik8s/internal/registry"
)

const dnsPath = "/apis/minik8s.io/v1/namespaces/default/dnses"

// A DNS object over HTTP: what does not exist yet is warned of; the status is the master's to write; nodes read it.
func TestDNSOverHTTP(t *testing.T) {
	c := start(t)
	ask := func(method, path, body string) (*http.Response, string) {
		t.Helper()
		req, err := http.NewRequest(method, "http://minik8s"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.root().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, string(answer)
	}
	warned := func(resp *http.Response, want ...string) {
		t.Helper()
		got := resp.Header.Values("Warning")
		if len(got) != len(want) {
			t.Fatalf("%q, want %q", got, want)
		}
		for i := range want {
			if !strings.Contains(got[i], want[i]) {
				t.Errorf("%q, want %q", got, want)
			}
		}
	}
	if code, body := c.do(c.root(), "POST", "/api/v1/namespaces/default/services", `{"metadata":{"name":"web"},"spec":{"ports":[{"port":80}]}}`); code != 201 {
		t.Fatal(code, body)
	}
	const object = `{"apiVersion":"minik8s.io/v1","kind":"DNS","metadata":{"name":"d"},"spec":{"host":"d.example","paths":[
		{"path":"/a","service":{"name":"web","port":80}},{"path":"/b/","service":{"name":"web","port":81}},{"path":"/c","address":"http://gone:8080"},{"path":"/d","address":"http://10.6.1.1"}]},
		"status":{"conditions":[{"type":"Ready"}]}}`
	resp, body := ask("POST", dnsPath, object)
	if resp.StatusCode != 201 {
		t.Fatal(body)
	}
	warned(resp, "spec.paths[1]: service default/web has no TCP port 81", "spec.paths[2]: there is no service default/gone yet")
	var d minik8s.DNS
	if err := json.Unmarshal([]byte(body), &d); err != nil || d.Spec.ServiceAddress == "" || d.Generation != 1 || len(d.Status.Conditions) > 0 {
		t.Fatal(body, err)
	}
	if resp, body = ask("POST", dnsPath, strings.Replace(object, `"name":"d"`, `"name":"e"`, 1)); resp.StatusCode != 422 || !strings.Contains(body, "dns default/d has this name") {
		t.Error(resp.StatusCode, body)
	}
	if resp, body = ask("POST", dnsPath, `{"metadata":{"name":"e"},"spec":{"host":"E","paths":[{"path":"x"}]}}`); resp.StatusCode != 422 ||
		!strings.Contains(body, "spec.host") || !strings.Contains(body, "spec.paths[0].path") || !strings.Contains(body, "spec.paths[0]: Required value: set one of service and address") {
		t.Error(resp.StatusCode, body)
	}
	// An update warns too, and one that repairs the rest no more.
	d.Spec.Paths = d.Spec.Paths[:2]
	if resp, body = ask("PUT", dnsPath+"/d", encoded(t, d)); resp.StatusCode != 200 {
		t.Fatal(body)
	}
	warned(resp, "spec.paths[1]: service default/web has no TCP port 81")
	d.ResourceVersion = ""
	d.Spec.Paths = d.Spec.Paths[:1]
	if resp, body = ask("PUT", dnsPath+"/d", encoded(t, d)); resp.StatusCode != 200 {
		t.Fatal(body)
	}
	warned(resp)
	// The status, by the part that keeps it.
	part := c.user("system:dns-controller")
	d.ResourceVersion, d.Spec.Host = "", "changed.example"
	d.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Complete", LastTransitionTime: metav1.Now()}}
	if code, body := c.do(part, "PUT", dnsPath+"/d/status", encoded(t, d)); code != 200 || !strings.Contains(body, `"Complete"`) || strings.Contains(body, "changed.example") {
		t.Error(code, body)
	}
	d.Status.Conditions[0].Reason = "not a reason"
	if code, body := c.do(part, "PUT", dnsPath+"/d/status", encoded(t, d)); code != 422 || !strings.Contains(body, "status.conditions[0].reason") {
		t.Error(code, body)
	}
	if code, body := c.do(part, "PUT", dnsPath+"/d", encoded(t, d)); code != 403 {
		t.Error(code, body)
	}
	worker := c.user("system:node:n1", registry.GroupNodes)
	if code, body := c.do(worker, "GET", "/apis/minik8s.io/v1/dnses", ""); code != 200 || !strings.Contains(body, "d.example") {
		t.Error(code, body)
	}
	if code, body := c.do(worker, "DELETE", dnsPath+"/d", ""); code != 403 {
		t.Error(code, body)
	}
	_, body = c.do(c.root(), "GET", dnsPath, "", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	var table metav1.Table
	if err := json.Unmarshal([]byte(body), &table); err != nil || len(table.Rows) != 1 {
		t.Fatal(body, err)
	}
	if cells := table.Rows[0].Cells; !slices.Equal(cells[:4], []any{"d", "d.example", d.Spec.ServiceAddress, "/a"}) || cells[5] != "web:80" {
		t.Errorf("%v", cells)
	}
	if _, body = c.do(c.root(), "GET", "/apis/minik8s.io/v1", ""); !strings.Contains(body, `"dnses/status"`) {
		t.Error(body)
	}
	if _, body = c.do(c.root(), "GET", "/openapi/v3/apis/minik8s.io/v1", ""); !strings.Contains(body, "minik8s.internal.api.minik8s.DNSPath") || !strings.Contains(body, "It is taken off before the request goes on") {
		t.Error("no schema")
	}
}

// The second seed system's example, with its Services: the addresses are as it says.
func TestSeedDNSWithItsServices(t *testing.T) {
	c := start(t)
	for _, x := range []struct{ file, path string }{{"a-service-dns", "/api/v1/namespaces/default/services"}, {"a-dns", dnsPath}} {
		manifest, err := os.ReadFile("../../testdata/dialects/" + x.file + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		if code, body := c.do(c.root(), "POST", x.path, string(manifest)); code != 201 {
			t.Fatal(code, body)
		}
	}
	_, body := c.do(c.root(), "GET", dnsPath+"/dns-test", "")
	var d minik8s.DNS
	if err := yaml.Unmarshal([]byte(body), &d); err != nil || d.Spec.ServiceAddress != "10.8.0.1" || d.Spec.Host != "hello.world.minik8s" ||
		len(d.Spec.Paths) != 2 || d.Spec.Paths[1] != (minik8s.DNSPath{Path: "/new/world", Address: "http://10.6.1.2:80"}) {
		t.Error(body, err)
	}
}

// A node reads the Secret of a certificate as long as an Ingress names it, and no other one: its gateway answers with it.
func TestNodesReadCertificates(t *testing.T) {
	c := start(t)
	for _, name := range []string{"cert", "other"} {
		if code, body := c.do(c.root(), "POST", "/api/v1/namespaces/default/secrets", `{"metadata":{"name":"`+name+`"}}`); code != 201 {
			t.Fatal(code, body)
		}
	}
	node, nobody := c.user("system:node:n1", registry.GroupNodes), c.user("somebody")
	const secrets, ingresses = "/api/v1/namespaces/default/secrets", "/apis/networking.k8s.io/v1/namespaces/default/ingresses"
	reads := func(want int) {
		t.Helper()
		for _, path := range []string{"/cert", "?fieldSelector=metadata.name%3Dcert", "?fieldSelector=metadata.name%3Dcert&watch=true&timeoutSeconds=1"} {
			if code, body := c.do(node, "GET", secrets+path, ""); code != want {
				t.Errorf("the node reads the certificate by %s: %d, want %d: %s", path, code, want, body)
			}
		}
		for path, user := range map[string]*http.Client{secrets + "/other": node, secrets: node, secrets + "?watch=true": node, secrets + "?fieldSelector=metadata.name%3Dother": node,
			secrets + "?fieldSelector=metadata.name%21%3Dcert": node, "/api/v1/secrets?fieldSelector=metadata.name%3Dcert": node, secrets + "/cert": nobody} {
			if code, body := c.do(user, "GET", path, ""); code != 403 {
				t.Errorf("%s: %d: %s", path, code, body)
			}
		}
		if code, body := c.do(node, "PUT", secrets+"/cert", `{"metadata":{"name":"cert"},"stringData":{"a":"b"}}`); code != 403 {
			t.Errorf("the node writes it: %d: %s", code, body)
		}
	}
	reads(403)
	if code, body := c.do(c.root(), "POST", ingresses, `{"metadata":{"name":"web"},"spec":{"tls":[{"hosts":["a.example"],"secretName":"cert"}],"defaultBackend":{"service":{"name":"web","port":{"number":80}}}}}`); code != 201 {
		t.Fatal(code, body)
	}
	reads(200)
	if code, body := c.do(c.root(), "DELETE", ingresses+"/web", ""); code != 200 {
		t.Fatal(code, body)
	}
	reads(403)
}
