package apiserver_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

const robots = "/api/v1/namespaces/default/serviceaccounts"

// A token comes from the API, and is shown to it in place of a certificate.
func TestTokens(t *testing.T) {
	c := start(t)
	root, nobody := c.root(), c.user("")
	if code, body := c.do(root, "POST", robots, `{"metadata":{"name":"robot"}}`); code != http.StatusCreated {
		t.Fatal(code, body)
	}
	ask := func(spec string) string {
		t.Helper()
		code, body := c.do(root, "POST", robots+"/robot/token", `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":`+spec+`}`)
		var made struct {
			Status struct{ Token, ExpirationTimestamp string }
		}
		if err := json.Unmarshal([]byte(body), &made); err != nil || code != http.StatusCreated || made.Status.Token == "" || made.Status.ExpirationTimestamp == "" {
			t.Fatal(code, body, err)
		}
		return made.Status.Token
	}
	good, vault := ask(`{}`), ask(`{"audiences":["vault"]}`)
	for _, x := range []struct {
		name, auth, method, path string
		code                     int
		says                     string
	}{
		{"its own namespace", "Bearer " + good, "GET", cms, 200, "ConfigMapList"},
		{"in small letters", "bearer " + good, "GET", cms, 200, "ConfigMapList"},
		{"discovery", "Bearer " + good, "GET", "/api/v1", 200, "serviceaccounts/token"},
		{"another namespace", "Bearer " + good, "GET", "/api/v1/namespaces/kube-node-lease/configmaps", 403, `User \"system:serviceaccount:default:robot\" cannot list`},
		{"secrets", "Bearer " + good, "GET", "/api/v1/namespaces/default/secrets", 403, "no secrets"},
		{"a change", "Bearer " + good, "POST", cms, 403, "cannot create"},
		{"metrics", "Bearer " + good, "GET", "/metrics", 403, "cannot get path"},
		{"for another audience", "Bearer " + vault, "GET", cms, 401, "not for"},
		{"garbage", "Bearer x.y.z", "GET", cms, 401, "not valid"},
		{"garbage where none is needed", "Bearer x.y.z", "GET", "/healthz", 401, "not valid"},
		{"another scheme", "Basic cm9vdDpyb290", "GET", cms, 401, "token"},
		{"nothing", "", "GET", cms, 401, "token"},
		{"nothing where none is needed", "", "GET", "/version", 200, "gitVersion"},
	} {
		code, body := c.do(nobody, x.method, x.path, `{"metadata":{"name":"a"}}`, "Authorization", x.auth)
		if code != x.code || !strings.Contains(body, x.says) {
			t.Errorf("%s: %d %s", x.name, code, body)
		}
	}
	if code, body := c.do(root, "GET", robots+"/robot/token", ""); code != http.StatusMethodNotAllowed {
		t.Errorf("reading a token: %d %s", code, body)
	}
	if code, body := c.do(root, "POST", robots+"/robot/token", `{"spec":7}`); code != http.StatusBadRequest {
		t.Errorf("a body that is no request: %d %s", code, body)
	}
}
