package apiserver_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"minik8s/internal/registry"
)

// TestQuestions: who one is, what one may, and for masters what others may and whose a token is.
func TestQuestions(t *testing.T) {
	c := start(t)
	root, alice := c.root(), c.user("alice", "team")
	if code, body := c.do(root, "POST", robots, `{"metadata":{"name":"robot"}}`); code != http.StatusCreated {
		t.Fatal(code, body)
	}
	_, body := c.do(root, "POST", robots+"/robot/token", `{"spec":{"audiences":["vault"]}}`)
	var made struct{ Status struct{ Token string } }
	if err := json.Unmarshal([]byte(body), &made); err != nil {
		t.Fatal(err)
	}
	const authn, authz = "/apis/authentication.k8s.io/v1/", "/apis/authorization.k8s.io/v1/"
	pods := `{"spec":{"resourceAttributes":{"verb":"get","resource":"pods","namespace":"default"}}}`
	as := func(user, rest string) string { return `{"spec":{"user":"` + user + `",` + rest + `}}` }
	for _, x := range []struct {
		name   string
		client *http.Client
		path   string
		body   string
		code   int
		says   string
		header []string
	}{
		{"who am I", alice, authn + "selfsubjectreviews", `{}`, 201, `"userInfo":{"username":"alice","groups":["team","system:authenticated"]}`, nil},
		{"who am I as another", root, authn + "selfsubjectreviews", `{}`, 201, `"username":"bob","uid":"7","groups":["x","system:authenticated"],"extra":{"a/b":["c"]}`,
			[]string{"Impersonate-User", "bob", "Impersonate-Group", "x", "Impersonate-Uid", "7", "Impersonate-Extra-a%2fb", "c"}},
		{"nobody", c.user(""), authn + "selfsubjectreviews", `{}`, 401, "", nil},
		{"may a master", root, authz + "selfsubjectaccessreviews", pods, 201, `"allowed":true`, nil},
		{"may a user", alice, authz + "selfsubjectaccessreviews", pods, 201, `"allowed":false`, nil},
		{"why not", alice, authz + "selfsubjectaccessreviews", pods, 201, `cannot get resource`, nil},
		{"a path", alice, authz + "selfsubjectaccessreviews", `{"spec":{"nonResourceAttributes":{"verb":"get","path":"/version"}}}`, 201, `"allowed":true`, nil},
		{"a path of the masters", alice, authz + "selfsubjectaccessreviews", `{"spec":{"nonResourceAttributes":{"verb":"get","path":"/metrics"}}}`, 201, `"allowed":false`, nil},
		{"a kind that is not served", root, authz + "selfsubjectaccessreviews", `{"spec":{"resourceAttributes":{"verb":"get","group":"x.io","resource":"things"}}}`, 201, `"allowed":true`, nil},
		{"a view of a kind", root, authz + "selfsubjectaccessreviews", `{"spec":{"resourceAttributes":{"verb":"create","group":"events.k8s.io","resource":"events","namespace":"default"}}}`, 201, `"allowed":true`,
			[]string{"Impersonate-User", "system:node:n1", "Impersonate-Group", "system:nodes"}},
		{"a view that is open where its kind is not", root, authz + "selfsubjectaccessreviews", `{"spec":{"resourceAttributes":{"verb":"list","group":"minik8s.io","resource":"peers"}}}`, 201, `"allowed":true`,
			[]string{"Impersonate-User", "system:node:n1", "Impersonate-Group", "system:nodes"}},
		{"the kind", root, authz + "selfsubjectaccessreviews", `{"spec":{"resourceAttributes":{"verb":"list","resource":"nodes"}}}`, 201, `"allowed":false`,
			[]string{"Impersonate-User", "system:node:n1", "Impersonate-Group", "system:nodes"}},
		{"everything", root, authz + "selfsubjectaccessreviews", `{"spec":{"resourceAttributes":{"verb":"*","group":"*","resource":"*"}}}`, 201, `"allowed":true`, nil},
		{"nothing asked", root, authz + "selfsubjectaccessreviews", `{"spec":{}}`, 422, "exactly one of", nil},
		{"rules of a master", root, authz + "selfsubjectrulesreviews", `{"spec":{"namespace":"default"}}`, 201, `"verbs":["*"],"apiGroups":["*"],"resources":["*"]`, nil},
		{"rules of a user", alice, authz + "selfsubjectrulesreviews", `{"spec":{"namespace":"default"}}`, 201, `"selfsubjectreviews"`, nil},
		{"rules of a service account", root, authz + "selfsubjectrulesreviews", `{"spec":{"namespace":"default"}}`, 201, `"configmaps"`, []string{"Impersonate-User", "system:serviceaccount:default:robot"}},
		{"rules without a namespace", alice, authz + "selfsubjectrulesreviews", `{"spec":{}}`, 400, "namespace", nil},
		{"of another", root, authz + "subjectaccessreviews", as("system:serviceaccount:default:robot", `"groups":["system:serviceaccounts","system:serviceaccounts:default"],"resourceAttributes":{"verb":"list","resource":"pods","namespace":"default"}`), 201, `"allowed":true`, nil},
		{"of another, a secret", root, authz + "subjectaccessreviews", as("system:serviceaccount:default:robot", `"groups":["system:serviceaccounts","system:serviceaccounts:default"],"resourceAttributes":{"verb":"list","resource":"secrets","namespace":"default"}`), 201, `"allowed":false`, nil},
		{"of nobody", root, authz + "subjectaccessreviews", pods, 422, "user or group", nil},
		{"of another by a user", alice, authz + "subjectaccessreviews", as("x", `"resourceAttributes":{"verb":"list","resource":"pods"}`), 403, "", nil},
		{"in a namespace", root, authz + "namespaces/default/localsubjectaccessreviews", as("x", `"resourceAttributes":{"verb":"list","resource":"pods","namespace":"default"}`), 201, `"allowed":false`, nil},
		{"in another namespace", root, authz + "namespaces/default/localsubjectaccessreviews", as("x", `"resourceAttributes":{"verb":"list","resource":"pods","namespace":"other"}`), 422, "namespace", nil},
		{"a token", root, authn + "tokenreviews", `{"spec":{"token":"` + made.Status.Token + `","audiences":["x","vault"]}}`, 201, `"authenticated":true,"user":{"username":"system:serviceaccount:default:robot"`, nil},
		{"a token, for whom", root, authn + "tokenreviews", `{"spec":{"token":"` + made.Status.Token + `","audiences":["x","vault"]}}`, 201, `"audiences":["vault"]`, nil},
		{"a token for others", root, authn + "tokenreviews", `{"spec":{"token":"` + made.Status.Token + `"}}`, 201, `"error":"the token is for`, nil},
		{"no token", root, authn + "tokenreviews", `{"spec":{}}`, 400, "token", nil},
		{"a token, by a user", alice, authn + "tokenreviews", `{"spec":{"token":"x"}}`, 403, "", nil},
		{"only as a table", root, authz + "selfsubjectaccessreviews", pods, 406, "NotAcceptable", []string{"Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"}},
		{"as a table or itself", root, authz + "selfsubjectaccessreviews", pods, 201, `"allowed":true`, []string{"Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}},
		{"not a question's kind", root, authz + "selfsubjectaccessreviews", `{"kind":"Pod","apiVersion":"v1"}`, 400, "", nil},
	} {
		code, body := c.do(x.client, "POST", x.path, x.body, x.header...)
		if code != x.code || !strings.Contains(body, x.says) {
			t.Errorf("%s: %d %s", x.name, code, body)
		}
	}
	for _, path := range []string{authn + "tokenreviews", authz + "selfsubjectaccessreviews/x"} {
		if code, _ := c.do(root, "GET", path, ""); code != 404 && code != 405 {
			t.Errorf("GET %s: %d", path, code)
		}
	}
	if _, body := c.do(alice, "GET", "/apis/authorization.k8s.io/v1", ""); !strings.Contains(body, `"name":"selfsubjectaccessreviews","singularName":"selfsubjectaccessreview","namespaced":false,"kind":"SelfSubjectAccessReview","verbs":["create"]`) {
		t.Errorf("discovery: %s", body)
	}
}

// TestIssuer: a relying party that knows nothing but the address checks a token by itself.
func TestIssuer(t *testing.T) {
	c := start(t)
	root := c.root()
	if code, body := c.do(root, "POST", robots, `{"metadata":{"name":"robot"}}`); code != http.StatusCreated {
		t.Fatal(code, body)
	}
	_, body := c.do(root, "POST", robots+"/robot/token", `{"spec":{"audiences":["vault"]}}`)
	var made struct{ Status struct{ Token string } }
	if err := json.Unmarshal([]byte(body), &made); err != nil {
		t.Fatal(err)
	}
	client := c.user("system:serviceaccount:default:robot", registry.GroupServiceAccounts)
	var found struct {
		Issuer string
		Jwks   string `json:"jwks_uri"`
	}
	if _, body := c.do(client, "GET", "/.well-known/openid-configuration", ""); json.Unmarshal([]byte(body), &found) != nil || found.Jwks != "https://"+c.address+"/openid/v1/jwks" {
		t.Fatal(body)
	}
	var set struct {
		Keys []struct{ Kid, X, Y, Crv, Kty string }
	}
	if _, body := c.do(client, "GET", "/openid/v1/jwks", ""); json.Unmarshal([]byte(body), &set) != nil || len(set.Keys) != 1 {
		t.Fatal(body)
	}
	token, err := jwt.Parse(made.Status.Token, func(tok *jwt.Token) (any, error) {
		k := set.Keys[0]
		if tok.Header["kid"] != k.Kid {
			t.Errorf("the token names key %v, the set has %v", tok.Header["kid"], k.Kid)
		}
		return publicKey(t, k.X, k.Y), nil
	}, jwt.WithIssuer(found.Issuer), jwt.WithAudience("vault"))
	if err != nil || !token.Valid {
		t.Fatal(err)
	}
}

// publicKey is a P-256 key from the coordinates of a JSON Web Key.
func publicKey(t *testing.T, x, y string) *ecdsa.PublicKey {
	t.Helper()
	point := []byte{4}
	for _, s := range []string{x, y} {
		b, err := base64.RawURLEncoding.DecodeString(s)
		if err != nil || len(b) != 32 {
			t.Fatal(s, err)
		}
		point = append(point, b...)
	}
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
