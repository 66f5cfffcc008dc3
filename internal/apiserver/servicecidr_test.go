package apiserver_test

import (
	"strings"
	"testing"
)

const (
	cidrsPath     = networkingPath + "/servicecidrs"
	addressesPath = networkingPath + "/ipaddresses"
)

// What upstream's conformance tests do with ServiceCIDRs and IPAddresses: each is found by discovery and takes every verb.
func TestServiceCIDRsAndIPAddressesOverHTTP(t *testing.T) {
	c := start(t)
	const merge = "application/merge-patch+json"
	parent := `"spec":{"parentRef":{"group":"example.com","resource":"things","namespace":"a","name":"b"}}`
	_, body := c.do(c.root(), "GET", networkingPath, "")
	for _, name := range []string{`"servicecidrs"`, `"servicecidrs/status"`, `"ipaddresses"`} {
		if !strings.Contains(body, `"name":`+name) {
			t.Errorf("discovery has no %s", name)
		}
	}
	w := c.watch(addressesPath + "?watch=true&labelSelector=type=broadcast")
	for _, x := range []struct {
		method, path, body string
		code               int
		says               string
	}{
		{"POST", cidrsPath, `{"metadata":{"name":"more"},"spec":{"cidrs":["10.97.0.0/24"]}}`, 201, `"finalizers":["networking.k8s.io/service-cidr-finalizer"]`},
		{"POST", cidrsPath, `{"metadata":{"name":"bad"},"spec":{"cidrs":["10.97.0.1/24"]}}`, 422, "spec.cidrs[0]"},
		{"PATCH", cidrsPath + "/more", `{"metadata":{"annotations":{"patched":"true"}}}`, 200, `"patched":"true"`},
		{"PATCH", cidrsPath + "/more", `{"spec":{"cidrs":["10.98.0.0/24"]}}`, 422, "spec.cidrs"},
		{"PATCH", cidrsPath + "/more/status", `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Ready","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, 200, `"type":"Ready"`},
		{"GET", cidrsPath, "", 200, `"10.97.0.0/24"`},
		{"DELETE", cidrsPath + "/more", "", 200, "deletionTimestamp"},
		{"POST", addressesPath, `{"metadata":{"name":"255.255.255.255","labels":{"type":"broadcast"}},` + parent + `}`, 201, `"resource":"things"`},
		{"POST", addressesPath, `{"metadata":{"name":"fe80::42:1dff:fe84:f9e2","labels":{"type":"link-local"}},` + parent + `}`, 201, ""},
		{"POST", addressesPath, `{"metadata":{"name":"FE80::1"},` + parent + `}`, 422, "metadata.name"},
		{"POST", addressesPath, `{"metadata":{"name":"10.0.0.1"}}`, 422, "spec.parentRef"},
		{"POST", addressesPath, `{"metadata":{"name":"10.0.0.1"},"spec":{"parentRef":{"group":"A B"}}}`, 422, "spec.parentRef.resource"},
		{"PATCH", addressesPath + "/255.255.255.255", `{"metadata":{"annotations":{"patched":"true"}}}`, 200, `"patched":"true"`},
		{"PATCH", addressesPath + "/255.255.255.255", `{"spec":{"parentRef":{"name":"c"}}}`, 422, "spec.parentRef"},
		{"PUT", addressesPath + "/255.255.255.255", `{"metadata":{"name":"255.255.255.255","labels":{"type":"broadcast"},"annotations":{"updated":"true"}},` + parent + `}`, 200, `"updated":"true"`},
		{"GET", addressesPath + "/fe80::42:1dff:fe84:f9e2", "", 200, `"link-local"`},
		{"GET", addressesPath + "?labelSelector=type=broadcast", "", 200, `"255.255.255.255"`},
		{"DELETE", addressesPath + "/255.255.255.255", "", 200, `"Success"`},
		{"DELETE", addressesPath + "?labelSelector=type=link-local", "", 200, ""},
		{"GET", addressesPath + "?labelSelector=type=link-local", "", 200, `"items":[]`},
		{"POST", "/api/v1/namespaces/default/services", `{"metadata":{"name":"web"},"spec":{"clusterIP":"10.6.0.1","ports":[{"port":80}]}}`, 201, ""},
		{"GET", addressesPath + "/10.6.0.1", "", 200, `"resource":"services","namespace":"default","name":"web"`},
		{"DELETE", addressesPath + "/10.6.0.1", "", 403, "change or delete that one"},
		{"PATCH", addressesPath + "/10.6.0.1", `{"metadata":{"annotations":{"patched":"true"}}}`, 403, "change or delete that one"},
	} {
		code, body := c.do(c.root(), x.method, x.path, x.body, "Content-Type", map[bool]string{true: merge, false: "application/json"}[x.method == "PATCH"])
		if code != x.code || !strings.Contains(body, x.says) {
			t.Errorf("%s %s %s: %d %s; want %d and %s", x.method, x.path, x.body, code, body, x.code, x.says)
		}
	}
	for _, typ := range []string{"ADDED", "MODIFIED", "MODIFIED", "DELETED"} {
		if !w.Scan() || !strings.Contains(w.Text(), `"type":"`+typ+`"`) || !strings.Contains(w.Text(), "255.255.255.255") {
			t.Fatalf("%s; want %s", w.Text(), typ)
		}
	}
	for path, row := range map[string]string{cidrsPath: "", addressesPath + "/10.6.0.1": `"cells":["10.6.0.1","services/default/web"]`} {
		if _, body := c.do(c.root(), "GET", path, "", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"); !strings.Contains(body, row) {
			t.Error(body)
		}
	}
}
