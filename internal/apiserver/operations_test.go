package apiserver_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The kinds of Services, names and paths take every operation that upstream's conformance tests do: create, get, list, also of all
// namespaces, watch, patch, update, both for the status, delete, deletecollection.
func TestOperationsOfNetworkKinds(t *testing.T) {
	c := start(t)
	const labelled = "labelSelector=test%3Doperations"
	for _, x := range []struct {
		root, plural, rest string // where, and what of the object is beside its metadata
		cluster            bool
		status             string // in JSON; empty: it has none
	}{
		{"/api/v1", "services", `"spec":{"type":"LoadBalancer","ports":[{"port":80}]}`, false, `{"loadBalancer":{"ingress":[{"ip":"203.0.113.1"}]}}`},
		{"/api/v1", "endpoints", `"subsets":[{"addresses":[{"ip":"10.0.0.24"}],"ports":[{"name":"http","port":80}]}]`, false, ""},
		{"/apis/discovery.k8s.io/v1", "endpointslices", `"addressType":"IPv4","endpoints":[{"addresses":["10.0.0.24"]}],"ports":[]`, false, ""},
		{networkingPath, "ingresses", `"spec":{"defaultBackend":{"service":{"name":"web","port":{"number":80}}}}`, false, `{"loadBalancer":{"ingress":[{"ip":"203.0.113.1"}]}}`},
		{networkingPath, "ingressclasses", `"spec":{"controller":"example.com/controller"}`, true, ""},
		{networkingPath, "networkpolicies", `"spec":{"podSelector":{}}`, false, ""},
	} {
		t.Run(x.plural, func(t *testing.T) {
			at := x.root + "/namespaces/default/" + x.plural
			if x.cluster {
				at = x.root + "/" + x.plural
			}
			do := func(method, path, body string, code int, says ...string) string {
				t.Helper()
				typ := "application/json"
				if method == "PATCH" {
					typ = "application/merge-patch+json"
				}
				got, answer := c.do(c.root(), method, path, body, "Content-Type", typ)
				if got != code {
					t.Fatalf("%s %s: %d, want %d: %s", method, path, got, code, answer)
				}
				for _, s := range says {
					if !strings.Contains(answer, s) {
						t.Fatalf("%s %s: %s; want %s", method, path, answer, s)
					}
				}
				return answer
			}
			do("GET", x.root, "", 200, `"name":"`+x.plural+`"`)
			object := func(name, more string) string {
				return fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"test":"operations"}%s},%s}`, name, more, x.rest)
			}
			for _, name := range []string{"one", "two", "three"} {
				if name == "three" && x.plural == "services" { // conflicts are another test's
					x.rest = strings.Replace(x.rest, "80", "81", 1)
				}
				do("POST", at, object(name, ""), 201, `"name":"`+name+`"`)
			}
			do("POST", at, object("one", ""), 409)
			w := c.watch(at + "?watch=true&" + labelled)
			for range 3 {
				if !w.Scan() || !strings.Contains(w.Text(), `"type":"ADDED"`) {
					t.Fatal(w.Text())
				}
			}
			do("GET", at+"/one", "", 200, `"test":"operations"`)
			do("GET", at+"?"+labelled, "", 200, `"one"`, `"two"`, `"three"`)
			do("GET", x.root+"/"+x.plural+"?"+labelled, "", 200, `"one"`, `"two"`, `"three"`)
			do("PATCH", at+"/one", `{"metadata":{"annotations":{"patched":"true"}}}`, 200, `"patched":"true"`)
			var meta struct {
				metav1.ObjectMeta `json:"metadata"`
			}
			if err := json.Unmarshal([]byte(do("GET", at+"/one", "", 200)), &meta); err != nil {
				t.Fatal(err)
			}
			do("PUT", at+"/one", object("one", `,"annotations":{"updated":"true"},"resourceVersion":"`+meta.ResourceVersion+`"`), 200, `"updated":"true"`)
			do("PUT", at+"/one", object("one", `,"resourceVersion":"`+meta.ResourceVersion+`"`), 409)
			events := []string{"MODIFIED patched", "MODIFIED updated"}
			if x.status != "" {
				do("PATCH", at+"/one/status", `{"metadata":{"annotations":{"patchedstatus":"true"}},"status":`+x.status+`}`, 200, `"patchedstatus":"true"`)
				var whole map[string]any
				if err := json.Unmarshal([]byte(do("GET", at+"/one/status", "", 200)), &whole); err != nil {
					t.Fatal(err)
				}
				whole["metadata"].(map[string]any)["annotations"].(map[string]any)["updatedstatus"] = "true"
				body, err := json.Marshal(whole)
				if err != nil {
					t.Fatal(err)
				}
				do("PUT", at+"/one/status", string(body), 200, `"updatedstatus":"true"`)
				events = append(events, "MODIFIED patchedstatus", "MODIFIED updatedstatus")
			}
			do("DELETE", at+"/one", "", 200)
			do("GET", at+"/one", "", 404)
			do("DELETE", at+"?"+labelled, "", 200)
			do("GET", at+"?"+labelled, "", 200, `"items":[]`)
			for _, want := range append(events, "DELETED one", "DELETED ", "DELETED ") {
				typ, word, _ := strings.Cut(want, " ")
				if !w.Scan() || !strings.Contains(w.Text(), `"type":"`+typ+`"`) || !strings.Contains(w.Text(), word) {
					t.Fatalf("%s; want %s", w.Text(), want)
				}
			}
		})
	}
}
