package apiserver_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"minik8s/internal/bootstrap"
	"minik8s/internal/certs"
	"minik8s/internal/kubelet/server/servertest"
	"minik8s/internal/membership"
	"minik8s/internal/registry"
)

// joinToken stores a join token, as "ctl token create" does.
func (c *cluster) joinToken() bootstrap.Token {
	return c.storeToken(bootstrap.Options{Groups: []string{bootstrap.GroupWorkers}, Expires: time.Now().Add(time.Hour)})
}

func (c *cluster) storeToken(opts bootstrap.Options) bootstrap.Token {
	c.t.Helper()
	tok := bootstrap.New(c.ca.Pin())
	body, err := json.Marshal(bootstrap.SecretOf(tok, opts))
	if err != nil {
		c.t.Fatal(err)
	}
	c.do(c.root(), "POST", "/api/v1/namespaces", `{"metadata":{"name":"kube-system"}}`) // there already, or made
	if code, b := c.do(c.root(), "POST", "/api/v1/namespaces/kube-system/secrets", string(body)); code != http.StatusCreated {
		c.t.Fatal(code, b)
	}
	return tok
}

const csrs = "/apis/certificates.k8s.io/v1/certificatesigningrequests"

// request is a CertificateSigningRequest for a user with groups.
func request(t *testing.T, name, signer, user string, groups ...string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	req, err := certs.NewRequest(key, pkix.Name{CommonName: user, Organization: groups}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": name}, "spec": map[string]any{
		"request": req, "signerName": signer, "usages": []string{"digital signature", "client auth"},
		"username": "admin", "groups": []string{registry.GroupMasters}}}) // what the sender says of itself does not count
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// A join token lets its holder ask for a certificate, as itself, and decide nothing.
func TestJoinTokens(t *testing.T) {
	c := start(t)
	tok := c.joinToken()
	old := c.storeToken(bootstrap.Options{Groups: []string{bootstrap.GroupWorkers}, Expires: time.Now().Add(-time.Minute)})
	wrong := tok
	wrong.Secret = strings.Repeat("a", 16)
	other := bootstrap.New("")
	shown := func(t bootstrap.Token) []string { return []string{"Authorization", "Bearer " + t.Bearer()} }
	const signer = "kubernetes.io/kube-apiserver-client-kubelet"
	ask := request(t, "n1", signer, "system:node:n1", "system:nodes")
	for _, x := range []struct {
		name string
		tok  bootstrap.Token
		code int
		says string
	}{
		{"wrong", wrong, 401, "not known here"},
		{"of another cluster", other, 401, "not known here"},
		{"expired", old, 401, "expired at"},
		{"good", tok, 201, `"username":"system:bootstrap:` + tok.ID},
	} {
		code, body := c.do(c.user(""), "POST", csrs, ask, shown(x.tok)...)
		if code != x.code || !strings.Contains(body, x.says) || strings.Contains(body, x.tok.Secret) {
			t.Errorf("%s: %d %s", x.name, code, body)
		}
		if x.code == 201 && (strings.Contains(body, registry.GroupMasters) || !strings.Contains(body, bootstrap.GroupWorkers)) {
			t.Errorf("the groups are not those of the token: %s", body)
		}
	}
	approval := `{"status":{"conditions":[{"type":"Approved","status":"True","reason":"x"}]}}`
	merge := []string{"Content-Type", "application/merge-patch+json"}
	for _, sub := range []string{"/approval", "/status", ""} {
		if code, body := c.do(c.user(""), "PATCH", csrs+"/n1"+sub, approval, append(shown(tok), merge...)...); code != 403 {
			t.Errorf("its holder writes n1%s: %d %s", sub, code, body)
		}
	}
	// A person approves by the subresource only, and never issues by it.
	for _, x := range []struct {
		sub, body string
		code      int
		says      string
	}{
		{"/status", approval, 422, "is set by the subresource approval"},
		{"/approval", `{"status":{"certificate":"aGFsbG8=","conditions":[{"type":"Approved","status":"True"}]}}`, 200, ""},
		{"/approval", `{"status":{"conditions":[]}}`, 422, "may not remove a condition"},
		{"/approval", `{"status":{"conditions":[{"type":"Approved","status":"True"},{"type":"Denied","status":"True"}]}}`, 422, "mutually exclusive"},
		{"", `{"spec":{"signerName":"example.com/other"}}`, 200, `"signerName":"` + signer},
	} {
		code, body := c.do(c.root(), "PATCH", csrs+"/n1"+x.sub, x.body, merge...)
		if code != x.code || !strings.Contains(body, x.says) || strings.Contains(body, "aGFsbG8=") {
			t.Errorf("%s %s: %d %s", x.sub, x.body, code, body)
		}
	}
	for _, group := range []string{registry.GroupMasters, "minik8s:master-nodes", bootstrap.GroupMasters} {
		if code, body := c.do(c.root(), "POST", csrs, request(t, "m", "kubernetes.io/kube-apiserver-client", "eve", "system:nodes", group)); code != 403 {
			t.Errorf("a request to be in %s: %d %s", group, code, body)
		}
	}
	if code, body := c.do(c.root(), "POST", csrs, request(t, "m", "kubernetes.io/kube-apiserver-client", membership.User)); code != 403 {
		t.Errorf("a request to be another master's etcd: %d %s", code, body)
	}
	if code, body := c.do(c.root(), "DELETE", "/api/v1/namespaces/kube-system/secrets/"+bootstrap.SecretName(tok.ID), ""); code != 200 {
		t.Fatal(code, body)
	}
	if code, body := c.do(c.user(""), "GET", csrs, "", shown(tok)...); code != 401 {
		t.Errorf("a deleted token: %d %s", code, body)
	}
}

// The first machine that registers has the name, until the Node is deleted.
func TestTwoMachinesOneName(t *testing.T) {
	c := start(t)
	first, second := c.user("system:node:n1", registry.GroupNodes), c.user("system:node:n1", registry.GroupNodes)
	if code, body := c.do(c.root(), "POST", "/api/v1/nodes", `{"metadata":{"name":"n1"}}`); code != 201 { // by a manifest, before both
		t.Fatal(code, body)
	}
	merge := []string{"Content-Type", "application/merge-patch+json"}
	mark := func(who *http.Client, v string) (int, string) {
		return c.do(who, "PATCH", "/api/v1/nodes/n1/status", fmt.Sprintf(`{"metadata":{"annotations":{"by":%q,"minik8s.io/machine-key":"mine"}}}`, v), merge...)
	}
	if code, body := mark(first, "first"); code != 200 || strings.Contains(body, `"mine"`) {
		t.Fatal(code, body)
	}
	// A manifest that does not mention it does not free the name.
	if code, body := c.do(c.root(), "PUT", "/api/v1/nodes/n1", `{"metadata":{"name":"n1"}}`); code != 200 || !strings.Contains(body, "minik8s.io/machine-key") {
		t.Error(code, body)
	}
	// A name that is none of a node's is nobody's.
	if code, body := c.do(c.user("n1", registry.GroupNodes), "GET", "/api/v1/nodes/n1", ""); code != 403 {
		t.Error(code, body)
	}
	for range 2 {
		for _, x := range []struct{ method, path, body string }{
			{"PATCH", "/api/v1/nodes/n1/status", `{"metadata":{"annotations":{"by":"second"}}}`},
			{"GET", "/api/v1/nodes/n1", ""},
			{"GET", "/api/v1/namespaces/default/pods?fieldSelector=spec.nodeName=n1", ""},
			{"POST", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", `{"metadata":{"name":"n1"}}`},
		} {
			if code, body := c.do(second, x.method, x.path, x.body, merge...); code != 403 || !strings.Contains(body, "belongs to another machine") {
				t.Errorf("the second machine: %s %s: %d %s", x.method, x.path, code, body)
			}
		}
		if code, body := mark(first, "again"); code != 200 {
			t.Error(code, body)
		}
	}
	if code, body := c.do(c.root(), "DELETE", "/api/v1/nodes/n1", ""); code != 200 {
		t.Fatal(code, body)
	}
	if code, body := c.do(second, "POST", "/api/v1/nodes", `{"metadata":{"name":"n1"}}`); code != 201 {
		t.Fatal(code, body)
	}
	if code, body := mark(first, "back"); code != 403 {
		t.Error("the first machine took the name back:", code, body)
	}
}

// A kubelet may describe its machine, and not give itself a role, another place for pods, or less to carry.
func TestNodeRestriction(t *testing.T) {
	c := start(t)
	node := c.user("system:node:n1", registry.GroupNodes)
	if code, body := c.do(node, "POST", "/api/v1/nodes", `{"metadata":{"name":"n1","labels":{"node-role.kubernetes.io/control-plane":""}}}`); code != 403 || !strings.Contains(body, "control-plane") {
		t.Error(code, body)
	}
	if code, body := c.do(node, "POST", "/api/v1/nodes", `{"metadata":{"name":"n1"},"spec":{"podCIDR":"10.244.128.0/17","podCIDRs":["10.244.128.0/17"]}}`); code != 403 || !strings.Contains(body, "/20") {
		t.Error(code, body)
	}
	if code, body := c.do(node, "POST", "/api/v1/nodes",
		`{"metadata":{"name":"n1","labels":{"kubernetes.io/hostname":"n1","zone":"a"}},"spec":{"taints":[{"key":"new","effect":"NoSchedule"}]}}`); code != 201 {
		t.Fatal(code, body)
	}
	for _, x := range []struct {
		sub, patch string
		code       int
	}{
		{"", `{"metadata":{"labels":{"zone":"b","topology.kubernetes.io/zone":"b","node.kubernetes.io/x":"y"}}}`, 200},
		{"", `{"metadata":{"labels":{"node-restriction.kubernetes.io/secure":"yes"}}}`, 403},
		{"", `{"metadata":{"labels":{"kubernetes.io/role":"master"}}}`, 403},
		{"/status", `{"metadata":{"labels":{"node-role.kubernetes.io/control-plane":""}}}`, 403},
		{"", `{"spec":{"taints":null}}`, 403},
		{"", `{"spec":{"unschedulable":true}}`, 200},
		{"/status", `{"metadata":{"labels":{"zone":null}}}`, 200},
	} {
		if code, body := c.do(node, "PATCH", "/api/v1/nodes/n1"+x.sub, x.patch, "Content-Type", "application/merge-patch+json"); code != x.code {
			t.Errorf("%s %s: %d %s", x.sub, x.patch, code, body)
		}
	}
}

// A worker's kubelet cannot make its machine look like a master, by which other machines would find the API. A machine that
// was a master may say that it is none any more.
func TestOnlyMastersAnnounceAnAPI(t *testing.T) {
	c := start(t)
	node := c.user("system:node:n1", registry.GroupNodes)
	merge := []string{"Content-Type", "application/merge-patch+json"}
	if code, body := c.do(node, "POST", "/api/v1/nodes", `{"metadata":{"name":"n1","annotations":{"minik8s.io/api-address":"10.0.0.66:6443"}}}`); code != 403 || !strings.Contains(body, "no master") {
		t.Error(code, body)
	}
	if code, body := c.do(node, "POST", "/api/v1/nodes", `{"metadata":{"name":"n1"}}`); code != 201 {
		t.Fatal(code, body)
	}
	const label, address = `"labels":{"node-role.kubernetes.io/control-plane":""}`, `"annotations":{"minik8s.io/api-address":"10.0.0.1:6443"}`
	const noLabel, noAddress = `"labels":{"node-role.kubernetes.io/control-plane":null}`, `"annotations":{"minik8s.io/api-address":null}`
	for _, x := range []struct {
		name  string
		who   *http.Client
		patch string
		code  int
	}{
		{"a worker: label", node, label, 403},
		{"a worker: address", node, address, 403},
		{"a worker: both", node, label + "," + address, 403},
		{"by an administrator: label", c.root(), label, 200},
		{"a worker with the label: address", node, address, 403},
		{"a worker that was never a master: no label", node, noLabel, 403},
		{"by an administrator: address", c.root(), address, 200},
		{"was a master: another address", node, `"annotations":{"minik8s.io/api-address":"10.0.0.66:6443"}`, 403},
		{"was a master: no label", node, noLabel, 403},
		{"was a master: nothing of both", node, noLabel + "," + noAddress, 200},
		{"and not again", node, label + "," + address, 403},
		{"by an administrator: both", c.root(), label + "," + address, 200},
		{"was a master: no address", node, noAddress, 200},
	} {
		for _, sub := range []string{"", "/status"} {
			if x.code == 200 && sub != "" {
				continue // it is done
			}
			if code, body := c.do(x.who, "PATCH", "/api/v1/nodes/n1"+sub, `{"metadata":{`+x.patch+`}}`, merge...); code != x.code {
				t.Errorf("%s%s: %d %s", x.name, sub, code, body)
			}
		}
	}
}

// A certificate ends although its connection stays, and the client's next connection has the renewed one.
func TestCertificateExpiresOnAnOpenConnection(t *testing.T) {
	c := start(t)
	c.ca.Lifetime = 2 * time.Second
	short := servertest.Cert(t)(c.ca.Client(t.TempDir(), "short", "admin", registry.GroupMasters))
	c.ca.Lifetime = certs.DefaultLifetime
	long := servertest.Cert(t)(c.ca.Client(t.TempDir(), "long", "admin", registry.GroupMasters))
	var handshakes atomic.Int32
	tr := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: c.ca.Pool(),
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if handshakes.Add(1) == 1 {
				return &short, nil
			}
			return &long, nil
		}}}
	defer tr.CloseIdleConnections()
	refused := 0
	for end := time.Now().Add(time.Minute); handshakes.Load() < 2; {
		resp, err := (&http.Client{Transport: tr}).Get("https://" + c.address + cms)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		switch {
		case resp.StatusCode == 401:
			refused++
		case resp.StatusCode != 200 || time.Now().After(end):
			t.Fatalf("%s after %d connections", resp.Status, handshakes.Load())
		}
	}
	if refused != 1 {
		t.Errorf("%d requests were refused on the old connection", refused)
	}
}
