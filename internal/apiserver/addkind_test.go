package apiserver_test

import (
	"net/http"
	"strings"
	"testing"

	"minik8s/internal/api"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
)

// A kind that comes while the server runs is served like the others from then on.
func TestAddKind(t *testing.T) {
	c := start(t)
	root := c.root()
	const gadgets = "/apis/test.minik8s.io/v1/namespaces/default/gadgets"
	expect := func(method, path, body string, code int, want ...string) {
		t.Helper()
		header := "application/json"
		if method == "PATCH" {
			header = "application/merge-patch+json"
		}
		got, answer := c.do(root, method, path, body, "Content-Type", header)
		if got != code {
			t.Fatalf("%s %s: %d, want %d: %s", method, path, got, code, answer)
		}
		for _, w := range want {
			if !strings.Contains(answer, w) {
				t.Errorf("%s %s: no %s in %s", method, path, w, answer)
			}
		}
	}
	expect("GET", "/openapi/v3", "", 200) // what is kept of it holds no longer
	expect("GET", gadgets, "", 404)
	if err := c.reg.AddKind(t.Context(), registrytest.Gadgets, registrytest.GadgetStrategy()); err != nil {
		t.Fatal(err)
	}
	if err := c.reg.AddKind(t.Context(), registrytest.Gadgets, registrytest.GadgetStrategy()); err == nil {
		t.Error("added twice")
	}
	expect("GET", "/apis", "", 200, `"test.minik8s.io"`)
	expect("GET", "/apis/test.minik8s.io/v1", "", 200, `"gadgets"`, `"Gadget"`)
	expect("GET", "/openapi/v3", "", 200, "apis/test.minik8s.io/v1")
	expect("GET", "/openapi/v3/apis/test.minik8s.io/v1", "", 200, "colours")
	expect("GET", "/openapi/v2", "", 200, "/namespaces/{namespace}/gadgets")

	// Subresources and verbs are the table's, everywhere alike.
	expect("GET", "/apis/test.minik8s.io/v1", "", 200, `"name":"gadgets/paint","singularName":"","namespaced":true,"kind":"Gadget","verbs":["create"]`)
	expect("GET", "/openapi/v3/apis/test.minik8s.io/v1", "", 200, `/namespaces/{namespace}/gadgets/{name}/paint":{"post":`)
	expect("POST", gadgets, `{"metadata":{"name":"fence"}}`, 201)
	expect("POST", gadgets+"/fence/paint", `{"colours":{"post":"green"}}`, 201, `"green"`)
	expect("GET", gadgets+"/fence", "", 200, `"green"`)
	expect("GET", gadgets+"/fence/paint", "", 405)
	expect("GET", gadgets+"/fence/status", "", 404)
	expect("DELETE", gadgets+"/fence", "", 200)
	relics := &api.Kind{Group: "test.minik8s.io", Version: "v1", Kind: "Relic", Plural: "relics", Singular: "relic", Namespaced: true,
		Verbs: []string{"get", "list"}, New: registrytest.Gadgets.New, NewList: registrytest.Gadgets.NewList}
	if err := c.reg.AddKind(t.Context(), relics, &registry.Strategy{}); err != nil {
		t.Fatal(err)
	}
	const relic = "/apis/test.minik8s.io/v1/namespaces/default/relics"
	expect("GET", relic, "", 200)
	expect("GET", relic+"?watch=1", "", 405)
	expect("POST", relic, "{}", 405)
	expect("DELETE", relic+"/a", "", 405)
	expect("GET", "/openapi/v3/apis/test.minik8s.io/v1", "", 200, `/relics":{"get":{"responses"`, `/relics/{name}":{"get":{"responses"`)
	if _, doc := c.do(root, "GET", "/openapi/v3/apis/test.minik8s.io/v1", ""); strings.Contains(doc, `/relics/{name}":{"delete"`) {
		t.Error("OpenAPI tells of a verb that the kind has not")
	}

	events := c.watch(gadgets + "?watch=1")
	expect("POST", gadgets, `{"apiVersion":"test.minik8s.io/v1","kind":"Gadget","metadata":{"name":"a","labels":{"x":"y"}},"colours":{"hat":"red"}}`, 201, `"red"`)
	expect("POST", gadgets, `{"apiVersion":"test.minik8s.io/v1","kind":"Gadget","metadata":{"name":"b"},"colors":{}}`, 201)
	expect("POST", gadgets+"?fieldValidation=Strict", `{"apiVersion":"test.minik8s.io/v1","kind":"Gadget","metadata":{"name":"c"},"colors":{}}`, 400, `unknown field \"colors\"`)
	expect("GET", gadgets+"/a", "", 200, `{"kind":"Gadget","apiVersion":"test.minik8s.io/v1","metadata":{"resourceVersion":"`, `"hat":"red"`)
	expect("GET", gadgets+"?labelSelector=x%3Dy", "", 200, `"kind":"GadgetList"`, `"name":"a"`)
	expect("PATCH", gadgets+"/a", `{"colours":{"coat":"blue"}}`, 200, `"hat":"red"`, `"coat":"blue"`)
	expect("DELETE", gadgets+"/a", "", 200)
	for _, want := range []string{`"ADDED"`, `"ADDED"`, `"MODIFIED"`, `"DELETED"`} {
		if !events.Scan() || !strings.Contains(events.Text(), want) || !strings.Contains(events.Text(), `"kind":"Gadget"`) {
			t.Fatalf("the watch tells %q, want %s", events.Text(), want)
		}
	}
	// Server-side apply: without a schema, each field with its manager.
	apply := func(manager, force, body string, code int, want string) {
		t.Helper()
		got, answer := c.do(root, "PATCH", gadgets+"/applied?fieldManager="+manager+force, body, "Content-Type", "application/apply-patch+yaml")
		if got != code || !strings.Contains(answer, want) {
			t.Errorf("%s applies: %d, want %d and %s: %s", manager, got, code, want, answer)
		}
	}
	manifest := func(colours string) string {
		return `{"apiVersion":"test.minik8s.io/v1","kind":"Gadget","metadata":{"name":"applied"},"colours":` + colours + `}`
	}
	apply("one", "", manifest(`{"hat":"red"}`), 201, `"hat":"red"`)
	apply("two", "", manifest(`{"coat":"blue"}`), 200, `"hat":"red"`)
	apply("two", "", manifest(`{"hat":"blue"}`), 409, `\"one\"`)
	apply("two", "&force=true", manifest(`{"hat":"blue"}`), 200, `"colours":{"hat":"blue"}`)
	expect("DELETE", gadgets+"/applied", "", 200)

	// Rights are as for all kinds: the nodes have none, the service accounts of the namespace may read.
	if code, _ := c.do(c.user("system:node:n1", "system:nodes"), "GET", gadgets, ""); code != http.StatusForbidden {
		t.Errorf("a node reads gadgets: %d", code)
	}

	// What is stored is found again by a server that is told of the kind before anybody asks.
	again, stop := registrytest.Start(t, c.kept)
	defer stop()
	if err := again.AddKind(t.Context(), registrytest.Gadgets, registrytest.GadgetStrategy()); err != nil {
		t.Fatal(err)
	}
	if n := again.Count(registrytest.Gadgets); n != 1 {
		t.Errorf("%d gadgets are found again, want 1", n)
	}
}
