package apiserver_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"minik8s/internal/apiserver"
)

// Who may fetch images of functions, which have the functions' files.
func TestWhoFetchesImages(t *testing.T) {
	c := startWith(t, 0, talkers{}, func(cfg *apiserver.Config) {
		cfg.Images = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "an image") }) //nolint:errcheck // a test
	})
	root := c.root()
	for _, node := range []string{"here", "there"} {
		if code, body := c.do(root, "POST", "/api/v1/nodes", `{"metadata":{"name":"`+node+`"}}`); code != http.StatusCreated {
			t.Fatal(code, body)
		}
	}
	if code, body := c.do(root, "POST", "/api/v1/namespaces/default/pods", `{"metadata":{"name":"p"},"spec":{"nodeName":"here","containers":[{"name":"c",
		"image":"registry.minik8s.io:5000/functions/default/hello@sha256:0123456789012345678901234567890123456789012345678901234567890123"}]}}`); code != http.StatusCreated {
		t.Fatal(code, body)
	}
	here, there, alice := c.user("system:node:here", "system:nodes"), c.user("system:node:there", "system:nodes"), c.user("alice")
	account := c.user("system:serviceaccount:default:default", "system:serviceaccounts", "system:serviceaccounts:default")
	const own = "/v2/functions/default/hello"
	for _, x := range []struct {
		who          string
		as           *http.Client
		method, path string
		want         int
	}{
		{"its node", here, "GET", own + "/manifests/sha256:0123", 200},
		{"its node", here, "HEAD", own + "/blobs/sha256:0123", 200},
		{"its node", here, "GET", "/v2/", 200},
		{"its node", here, "PUT", own + "/manifests/sha256:0123", 403},
		{"its node", here, "GET", "/v2/functions/default/hell/manifests/sha256:0123", 403},
		{"its node", here, "GET", "/v2/functions/default/hello2/manifests/sha256:0123", 403},
		{"its node", here, "GET", "/v2/functions/other/hello/manifests/sha256:0123", 403},
		{"its node", here, "GET", "/v2/_catalog", 403},
		{"another node", there, "GET", own + "/manifests/sha256:0123", 403},
		{"a service account", account, "GET", own + "/manifests/sha256:0123", 403},
		{"a user", alice, "GET", own + "/manifests/sha256:0123", 403},
		{"a user", alice, "GET", "/v2/", 403},
		{"the administrator", root, "GET", own + "/manifests/sha256:0123", 200},
		{"the administrator", root, "PUT", "/v2/anything/manifests/1", 200},
	} {
		if code, body := c.do(x.as, x.method, x.path, ""); code != x.want {
			t.Errorf("%s, %s %s: %d %s", x.who, x.method, x.path, code, body)
		}
	}
}

// The second seed system's routes are judged as what they mean, before anything of a body is read.
func TestFunctionRoutes(t *testing.T) {
	c := start(t)
	root, alice := c.root(), c.user("alice")
	const good = `{"apiVersion":"v2","kind":"Func","metadata":{"name":"is_hello"},"spec":{"name":"is_hello","function":"ZGVmIHJ1bihhKTogcmV0dXJuIGEK","serviceAddress":"10.7.0.3"}}`
	for _, x := range []struct {
		who                *http.Client
		method, path, body string
		want               int
		says               string
	}{
		{alice, "POST", "/api/funcs/template", "no JSON", 403, "cannot create"},
		{root, "POST", "/api/funcs/template", "no JSON", 400, "expected a Func in JSON"},
		{root, "POST", "/api/funcs/template", `{"kind":"Pod"}`, 400, "expected Func"},
		{root, "POST", "/api/funcs/template", `{"kind":"Func","spec":{"function":"%"}}`, 400, "spec.function: expected a file in base64"},
		{root, "POST", "/api/funcs/template", good, 201, `"version":"v2"`},
		{root, "POST", "/api/funcs/template", good, 409, "already exists"},
		{root, "GET", "/api/funcs/template/is_hello", "", 200, "def run(a)"},
		{alice, "GET", "/api/funcs/template/is_hello", "", 403, "cannot get"},
		{alice, "POST", "/api/funcs/is_hello", "hi", 403, "functions/call"},
		{alice, "GET", "/api/funcs/call-1", "", 403, "functioncalls/result"},
		{root, "GET", "/api/funcs/call-1", "", 503, "functioncalls/result"}, // there is no part here that would answer
		{root, "POST", "/api/funcs/templates", "hi", 503, "functions/call"}, // a function's name
		{alice, "PUT", "/api/funcs/is_hello/call-1", "hi", 403, "functions/call"},
		{root, "PUT", "/api/funcs/is_hello/call-1", "hi", 503, "functions/call"},
		{alice, "PUT", "/api/funcs/RETURN/call-1", "hi", 403, "functioncalls/result"},
		{root, "PUT", "/api/funcs/RETURN/call-1", "hi", 503, "functioncalls/result"},
		{root, "PUT", "/api/funcs/is_hello/call-1/more", "hi", 404, ""},
		{alice, "GET", "/apis/minik8s.io/v1/namespaces/default/functions/is_hello/load", "", 403, "functions/load"},
		{root, "PATCH", "/api/funcs/is_hello", "", 404, ""},
		{root, "DELETE", "/api/funcs/template/is_hello", "", 200, ""},
		{root, "GET", "/api/funcs/template/is_hello", "", 404, "not found"},
	} {
		if code, body := c.do(x.who, x.method, x.path, x.body); code != x.want || !strings.Contains(strings.ReplaceAll(body, `\"`, `"`), x.says) {
			t.Errorf("%s %s: %d %s", x.method, x.path, code, body)
		}
	}
}
