package apiserver_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/registry"
)

const (
	networkingPath = "/apis/networking.k8s.io/v1"
	ingressesPath  = networkingPath + "/namespaces/default/ingresses"
	policiesPath   = networkingPath + "/namespaces/default/networkpolicies"
)

const ingressBody = `{"metadata":{"name":"NAME"},"spec":{"rules":[{"host":"a.example","http":{"paths":[{"path":"/a","pathType":"Prefix","backend":{"service":{"name":"web","port":{"number":80}}}}]}}]}}`

// A new Ingress that names no class gets the default one, the newest of several; a later default changes nothing.
func TestDefaultIngressClass(t *testing.T) {
	c := start(t)
	class := func(name, annotations string) {
		t.Helper()
		if code, body := c.do(c.root(), "POST", networkingPath+"/ingressclasses", `{"metadata":{"name":"`+name+`","annotations":{`+annotations+`}},"spec":{"controller":"example.com/x"}}`); code != 201 {
			t.Fatal(code, body)
		}
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) { // admission reads the cache
			if _, body := c.do(c.root(), "GET", networkingPath+"/ingressclasses?resourceVersion=0", ""); strings.Contains(body, `"name":"`+name+`"`) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatal("no class ", name)
			}
		}
	}
	make := func(name, change string) string {
		t.Helper()
		body := strings.Replace(ingressBody, "NAME", name, 1)
		if change != "" {
			body = strings.Replace(body, `"`+name+`"}`, `"`+name+`"`+change, 1)
		}
		code, answer := c.do(c.root(), "POST", ingressesPath, body)
		var in networkingv1.Ingress
		if err := json.Unmarshal([]byte(answer), &in); code != 201 || err != nil {
			t.Fatal(code, answer)
		}
		if in.Spec.IngressClassName == nil {
			return ""
		}
		return *in.Spec.IngressClassName
	}
	const marked = `"ingressclass.kubernetes.io/is-default-class":"true"`
	class("plain", "")
	if got := make("none", ""); got != "" {
		t.Errorf("without a default: %s", got)
	}
	class("first", marked)
	if got := make("one", ""); got != "first" {
		t.Errorf("with a default: %s", got)
	}
	if got := make("noted", `,"annotations":{"kubernetes.io/ingress.class":"plain"}}`); got != "" {
		t.Errorf("with the annotation: %s", got)
	}
	class("also", marked) // the newer one, or, of the same second, the first by name
	if got := make("two", ""); got != "also" {
		t.Errorf("with two defaults: %s", got)
	}
	if code, body := c.do(c.root(), "PATCH", ingressesPath+"/none", `{"metadata":{"labels":{"a":"b"}}}`, "Content-Type", "application/merge-patch+json"); code != 200 || strings.Contains(body, "ingressClassName") {
		t.Error(code, body)
	}
	_, body := c.do(c.root(), "GET", networkingPath+"/ingressclasses/first", "", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	if !strings.Contains(body, `"first (default)"`) {
		t.Error(body)
	}
}

// Ingresses, their classes and policies over HTTP: what is wrong is named, statuses are the masters', nodes read.
func TestNetworkingOverHTTP(t *testing.T) {
	c := start(t)
	for _, x := range []struct {
		path, body string
		says       []string // of the refusal; none: it goes in
	}{
		{ingressesPath, strings.Replace(ingressBody, "NAME", "web", 1), nil},
		{ingressesPath, strings.Replace(ingressBody, "NAME", "same-host", 1), nil},
		{ingressesPath, `{"metadata":{"name":"bad"},"spec":{"rules":[{"host":"10.0.0.1","http":{"paths":[{"path":"a//b","backend":{"service":{"name":"web","port":{"name":"http","number":80}}}},{"path":"a//b","pathType":"Exact","backend":{}}]}}]}}`,
			[]string{"spec.rules[0].host", "spec.rules[0].http.paths[0].pathType", "spec.rules[0].http.paths[1].path", "must not contain '//'", "spec.rules[0].http.paths[1].backend"}},
		{ingressesPath, `{"metadata":{"name":"bad"},"spec":{}}`, []string{"either `defaultBackend` or `rules` must be specified"}},
		{networkingPath + "/ingressclasses", `{"metadata":{"name":"bad"},"spec":{"controller":"x"}}`, []string{"spec.controller"}},
		{networkingPath + "/ingressclasses", `{"metadata":{"name":"good"},"spec":{"controller":"example.com/x","parameters":{"kind":"A","name":"b"}}}`, nil},
		{policiesPath, `{"metadata":{"name":"bad"},"spec":{"podSelector":{},"ingress":[{"from":[{},{"ipBlock":{"cidr":"10.0.0.0/8","except":["11.0.0.0/16"]},"podSelector":{}}],"ports":[{"port":80,"endPort":70}]}]}}`,
			[]string{"spec.ingress[0].from[0]", "spec.ingress[0].from[1]", "spec.ingress[0].from[1].ipBlock.except[0]", "spec.ingress[0].ports[0].endPort"}},
		{policiesPath, `{"metadata":{"name":"good"},"spec":{"podSelector":{"matchLabels":{"app":"web"}},"egress":[{"ports":[{"port":53}]}]}}`, nil},
	} {
		code, body := c.do(c.root(), "POST", x.path, x.body)
		if want := 201; len(x.says) == 0 && code != want || len(x.says) > 0 && code != 422 {
			t.Fatalf("%s: %d %s", x.body, code, body)
		}
		for _, says := range x.says {
			if !strings.Contains(body, says) {
				t.Errorf("%s does not say %s", body, says)
			}
		}
	}
	var p networkingv1.NetworkPolicy
	_, body := c.do(c.root(), "GET", policiesPath+"/good", "")
	if err := json.Unmarshal([]byte(body), &p); err != nil || !slices.Equal(p.Spec.PolicyTypes, []networkingv1.PolicyType{"Ingress", "Egress"}) ||
		*p.Spec.Egress[0].Ports[0].Protocol != "TCP" || p.Generation != 1 {
		t.Error(body, err)
	}
	if _, body = c.do(c.root(), "GET", networkingPath+"/ingressclasses/good", ""); !strings.Contains(body, `"scope":"Cluster"`) {
		t.Error(body)
	}
	if code, body := c.do(c.root(), "PATCH", networkingPath+"/ingressclasses/good", `{"spec":{"controller":"example.com/y"}}`, "Content-Type", "application/merge-patch+json"); code != 422 || !strings.Contains(body, "field is immutable") {
		t.Error(code, body)
	}
	// A policy's range in an old form stays as it is; a new one is refused.
	p.Spec.Egress[0].To = []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "010.0.0.0/8"}}}
	if code, body := c.do(c.root(), "PUT", policiesPath+"/good", encoded(t, p)); code != 422 || !strings.Contains(body, "spec.egress[0].to[0].ipBlock.cidr") {
		t.Error(code, body)
	}
	part := c.user("system:ingress-controller")
	status := `{"metadata":{"name":"web"},"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"},{"hostname":"lb.example"}]}}}`
	if code, body := c.do(part, "PATCH", ingressesPath+"/web/status", status, "Content-Type", "application/merge-patch+json"); code != 200 {
		t.Error(code, body)
	}
	if code, body := c.do(part, "PATCH", ingressesPath+"/web/status", strings.Replace(status, "192.0.2.1", "192.0.2", 1), "Content-Type", "application/merge-patch+json"); code != 422 || !strings.Contains(body, "status.loadBalancer.ingress[0].ip") {
		t.Error(code, body)
	}
	_, body = c.do(c.root(), "GET", ingressesPath+"/web", "", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	var table metav1.Table
	if err := json.Unmarshal([]byte(body), &table); err != nil || !slices.Equal(table.Rows[0].Cells[:5], []any{"web", "<none>", "a.example", "192.0.2.1,lb.example", "80"}) {
		t.Error(body, err)
	}
	worker := c.user("system:node:n1", registry.GroupNodes)
	for _, plural := range []string{"ingresses", "ingressclasses", "networkpolicies"} {
		if code, body := c.do(worker, "GET", networkingPath+"/"+plural, "", "Accept", "application/vnd.kubernetes.protobuf"); code != 200 || !strings.Contains(body, "k8s\x00") {
			t.Errorf("%s: %d %q", plural, code, body)
		}
		if code, body := c.do(worker, "DELETE", networkingPath+"/"+plural, ""); code == 200 {
			t.Errorf("%s: %d %s", plural, code, body)
		}
	}
}
