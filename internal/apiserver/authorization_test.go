package apiserver_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"minik8s/internal/api"
	"minik8s/internal/apiserver"
	"minik8s/internal/registry"
)

// door is one way to ask for something: a method at a path, and what it is called there.
type door struct {
	method, path, query string
	form, kind          *api.Kind // as it is asked for, and as it is stored
	sub, verb           string
	named               bool
}

// doors is every method at every path of every kind, in each form that it has, in a namespace, for an object of that name.
func doors(namespace, name string) []door {
	var out []door
	methods := map[string][]string{"": {"GET", "PUT", "PATCH", "DELETE"}}
	for _, k := range slices.Concat(api.Kinds, api.Views) {
		base := "/api/v1"
		if k.Group != "" {
			base = "/apis/" + k.Group + "/" + k.Version
		}
		if k.Namespaced {
			base += "/namespaces/" + namespace
		}
		base += "/" + k.Plural
		k, form := stored(k), k
		out = append(out,
			door{method: "GET", path: base, form: form, kind: k, verb: "list"},
			// A revision that is not there: who may watch is told so at once.
			door{method: "GET", path: base, query: "?watch=1&resourceVersion=999999999", form: form, kind: k, verb: "watch"},
			door{method: "POST", path: base, form: form, kind: k, verb: "create"},
			door{method: "DELETE", path: base, query: "?labelSelector=no=such", form: form, kind: k, verb: "deletecollection"})
		verbs := map[string]string{"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "POST": "create"}
		subs := []string{""}
		for _, s := range form.Subresources {
			subs = append(subs, s.Name)
		}
		for _, sub := range subs {
			ms := methods[sub]
			if sub != "" {
				ms = []string{"GET", "POST", "PUT", "PATCH", "DELETE"}
			}
			for _, m := range ms {
				d := door{method: m, path: base + "/" + name, form: form, kind: k, sub: sub, verb: verbs[m], named: true}
				if sub != "" {
					d.path += "/" + sub
				}
				if sub == "exec" || sub == "attach" || sub == "portforward" {
					d.verb = "create" // however it is asked for
				}
				out = append(out, d)
			}
		}
	}
	return out
}

// stored is a kind as it is stored, by which rights go.
func stored(k *api.Kind) *api.Kind {
	if k.View != nil {
		return k.View.Of
	}
	return k
}

// TestEveryDoor walks every path, method and identity over the wire. What each may do is said here once more,
// by hand, so that a rule which no path asks, or a path that asks no rule, is seen.
func TestEveryDoor(t *testing.T) {
	c := start(t)
	root := c.root()
	pod := func(name, node string) {
		t.Helper()
		body := fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"nodeName":%q,"serviceAccountName":"default","containers":[{"name":"c","image":"i"}]}}`, name, node)
		if code, b := c.do(root, "POST", "/api/v1/namespaces/default/pods", body); code != 201 {
			t.Fatal(code, b)
		}
	}
	pod("there", "n2")
	pod("mine", "n1")
	for _, plural := range []string{"configmaps", "secrets", "serviceaccounts"} {
		if code, b := c.do(root, "POST", "/api/v1/namespaces/default/"+plural, `{"metadata":{"name":"there"}}`); code != 201 {
			t.Fatal(code, b)
		}
	}
	token := func() string {
		t.Helper()
		code, body := c.do(root, "POST", robots+"/there/token", `{"spec":{}}`)
		var made struct{ Status struct{ Token string } }
		if err := json.Unmarshal([]byte(body), &made); err != nil || code != 201 {
			t.Fatal(code, body, err)
		}
		return made.Status.Token
	}()
	in := func(s string, list ...string) bool {
		for _, x := range list {
			if x == s {
				return true
			}
		}
		return false
	}
	never := func(string, door) bool { return false }
	always := func(string, door) bool { return true }
	robot := func(ns string, d door) bool {
		return ns == "default" && d.kind.Namespaced && d.kind != api.Secrets && in(d.sub, "", "status", "scale") && in(d.verb, "get", "list", "watch")
	}
	admin := c.user("admin", registry.GroupMasters)
	for _, who := range []struct {
		name    string
		client  *http.Client
		headers []string
		refused int
		may     func(ns string, d door) bool
	}{
		{"root on the socket", root, nil, 0, always},
		{"a master", admin, nil, 0, always},
		{"nobody", c.user(""), nil, 401, never},
		{"a user without rights", c.user("alice"), nil, 403, never},
		{"a master as that user", admin, []string{"Impersonate-User", "alice"}, 403, never},
		{"a user as a master", c.user("alice"), []string{"Impersonate-User", "bob", "Impersonate-Group", registry.GroupMasters}, 403, never},
		{"a service account", c.user(""), []string{"Authorization", "Bearer " + token}, 403, robot},
		{"a master as a service account", admin, []string{"Impersonate-User", "system:serviceaccount:default:robot"}, 403, robot},
		{"a service account as a master", c.user(""), []string{"Authorization", "Bearer " + token, "Impersonate-User", "admin"}, 403, never},
		{"a node", c.user("system:node:n1", registry.GroupNodes), nil, 403, func(ns string, d door) bool {
			if d.form == api.Peers || d.form == api.PodAddresses { // of all machines and pods the addresses alone
				return in(d.verb, "get", "list", "watch")
			}
			switch d.kind {
			case api.Nodes:
				return d.sub == "" && d.verb == "create"
			case api.Services, api.EndpointSlices, api.DNSes, api.Ingresses, api.IngressClasses, api.NetworkPolicies, api.Namespaces:
				return d.sub == "" && in(d.verb, "get", "list", "watch")
			case api.Events:
				return d.sub == "" && in(d.verb, "create", "update", "patch")
			case api.Leases:
				return ns == "kube-node-lease" && d.verb == "create"
			case api.CertificateSigningRequests:
				return d.sub == "" && in(d.verb, "get", "list", "watch", "create")
			}
			return false
		}},
		{"a node's proxy", c.user(registry.Proxy().Name), nil, 403, func(_ string, d door) bool {
			return in(d.kind.Plural, "services", "endpointslices", "nodes") && d.sub == "" && in(d.verb, "get", "list", "watch")
		}},
		{"a machine that joins", c.user(""), []string{"Authorization", "Bearer " + c.joinToken().Bearer()}, 403, func(_ string, d door) bool {
			return d.kind == api.CertificateSigningRequests && d.sub == "" && in(d.verb, "get", "list", "watch", "create")
		}},
		{"a part", c.user("system:replicaset-controller"), nil, 403, func(_ string, d door) bool {
			switch d.kind {
			case api.ReplicaSets, api.ReplicationControllers:
				return d.sub == "" && in(d.verb, "get", "list", "watch") || d.sub == "status" && in(d.verb, "update", "patch")
			case api.Pods:
				return d.sub == "" && in(d.verb, "get", "list", "watch", "create", "delete", "patch")
			case api.Events:
				return d.sub == "" && in(d.verb, "create", "update", "patch")
			}
			return false
		}},
		{"the part for functions", c.user("system:function-controller"), nil, 403, func(_ string, d door) bool {
			if d.sub == "" && in(d.verb, "list", "watch") {
				return true // triggers are about objects of any kind
			}
			switch d.kind {
			case api.Functions:
				return d.sub == "" && d.verb == "get" || d.sub == "status" && in(d.verb, "update", "patch") || d.sub == "call" && d.verb == "create"
			case api.FunctionCalls:
				return d.sub == "" && in(d.verb, "get", "create", "delete") || d.sub == "status" && in(d.verb, "update", "patch")
			case api.ReplicaSets:
				return d.sub == "" && in(d.verb, "get", "create", "update", "patch", "delete") || d.sub == "scale" && in(d.verb, "get", "update", "patch")
			case api.Pods:
				return d.sub == "" && in(d.verb, "get", "patch")
			case api.Services, api.EndpointSlices:
				return d.sub == "" && in(d.verb, "get", "create", "update", "delete")
			case api.Events:
				return d.sub == "" && in(d.verb, "create", "update", "patch")
			}
			return false
		}},
		{"the part for workflows", c.user("system:workflow-controller"), nil, 403, func(_ string, d door) bool {
			switch d.kind {
			case api.Workflows:
				return d.sub == "" && in(d.verb, "get", "list", "watch") || d.sub == "status" && in(d.verb, "update", "patch")
			case api.WorkflowRuns:
				return d.sub == "" && in(d.verb, "get", "list", "watch", "create", "delete") || d.sub == "status" && in(d.verb, "update", "patch")
			case api.WorkflowSteps:
				return d.sub == "" && in(d.verb, "get", "list", "create")
			case api.Functions:
				return d.sub == "" && in(d.verb, "get", "list", "watch") || d.sub == "call" && d.verb == "create"
			}
			return false
		}},
		{"the part for GPU jobs", c.user("system:gpu-controller"), nil, 403, func(_ string, d door) bool {
			switch d.kind {
			case api.GpuJobs:
				return d.sub == "" && in(d.verb, "get", "list", "watch", "update", "patch") || d.sub == "status" && in(d.verb, "update", "patch")
			case api.SlurmClusters:
				return d.sub == "" && in(d.verb, "get", "list", "watch") || d.sub == "status" && in(d.verb, "update", "patch")
			case api.Secrets, api.ConfigMaps, api.Namespaces:
				return d.sub == "" && d.verb == "get"
			case api.Events:
				return d.sub == "" && in(d.verb, "create", "update", "patch")
			}
			return false
		}},
	} {
		t.Run(who.name, func(t *testing.T) {
			asked, conns := 0, who.client.Transport.(*http.Transport)
			conns.DisableKeepAlives = false // thousands of requests
			defer conns.CloseIdleConnections()
			for _, ns := range []string{"default", "kube-node-lease"} {
				names := []string{"absent", "there"}
				if who.refused == 0 {
					names = names[:1] // or what is there would not be there any longer
				}
				for _, name := range names {
					for _, d := range doors(ns, name) {
						headers := who.headers
						if d.method == "PATCH" {
							headers = append([]string{"Content-Type", "application/merge-patch+json"}, headers...)
						}
						code, body := c.do(who.client, d.method, d.path+d.query, `{}`, headers...)
						if code == http.StatusMethodNotAllowed {
							continue // there is no such door
						}
						asked++
						may := who.may(ns, d)
						if refused := code == 401 || code == 403; refused == may || refused && code != who.refused {
							t.Errorf("%s %s (%s %s/%s), may %v: %d %s", d.method, d.path, d.verb, d.kind, d.sub, may, code, strings.TrimSpace(body))
						}
					}
				}
			}
			if asked < 200 {
				t.Errorf("only %d doors were tried", asked)
			}
		})
	}
	// What a node may do is a matter of the name.
	node := c.user("system:node:n1", registry.GroupNodes)
	for _, x := range []struct {
		method, path, body string
		code               int
	}{
		{"GET", "/api/v1/namespaces/default/pods/mine", "", 200},
		{"GET", "/api/v1/namespaces/default/pods/mine/log", "", 403},
		{"POST", "/api/v1/namespaces/default/pods/mine/exec?command=sh&stdout=1", "", 403},
		{"GET", "/api/v1/namespaces/default/pods?fieldSelector=spec.nodeName=n1", "", 200},
		{"GET", "/api/v1/namespaces/default/pods?fieldSelector=spec.nodeName=n2", "", 403},
		{"PATCH", "/api/v1/namespaces/default/pods/mine/status", `{"status":{"message":"hello"}}`, 200},
		{"PATCH", "/api/v1/namespaces/default/pods/mine", `{"metadata":{"labels":{"a":"b"}}}`, 403},
		{"POST", "/api/v1/nodes", `{"metadata":{"name":"n2"}}`, 403},
		{"POST", "/api/v1/nodes", `{"metadata":{"name":"n1"}}`, 201},
		{"PATCH", "/api/v1/nodes/n1/status", `{"metadata":{"labels":{"a":"b"}}}`, 200},
		{"DELETE", "/api/v1/nodes/n1", "", 403},
		{"POST", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", `{"metadata":{"name":"n2"}}`, 403},
		{"POST", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", `{"metadata":{"name":"n1"}}`, 201},
		{"GET", "/api/v1/namespaces/default/serviceaccounts/default", "", 404}, // a pod of its own names it
		{"GET", "/api/v1/namespaces/default/serviceaccounts/there", "", 403},
		{"DELETE", "/api/v1/namespaces/default/pods/mine", "", 200},
	} {
		if code, body := c.do(node, x.method, x.path, x.body, "Content-Type", map[bool]string{true: "application/merge-patch+json", false: "application/json"}[x.method == "PATCH"]); code != x.code {
			t.Errorf("the node: %s %s: %d %s, want %d", x.method, x.path, code, body, x.code)
		}
	}
}

// objectRoute are the routes that TestEveryDoor walks, and those of the seeds, which lead to them.
var objectRoute = map[string]bool{"/api/v1/*": true, "/apis/:group/:version/*": true}

// matches reports whether a route's pattern is that of a path.
func matches(pattern, path string) bool {
	p, q := strings.Split(pattern, "/"), strings.Split(path, "/")
	for i, s := range p {
		if s == "*" {
			return true
		}
		if i >= len(q) || s != q[i] && !strings.HasPrefix(s, ":") {
			return false
		}
	}
	return len(p) == len(q)
}

// TestPaths that are no objects: who may use which.
func TestPaths(t *testing.T) {
	c := startWith(t, 0, talkers{}, func(cfg *apiserver.Config) { cfg.Images = http.NotFoundHandler() })
	open := []string{"/healthz", "/livez", "/readyz", "/version", "/version/", "/healthz/ping", "/livez/ping", "/readyz/ping"}
	known := []string{"/", "/api", "/apis", "/apis/apps", "/apis/apps/", "/apis/apps/v1", "/apis/apps/v1/", "/api/v1", "/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1",
		"/.well-known/openid-configuration", "/openid/v1/jwks", "/api/", "/apis/", "/api/v1/"}
	masters := []string{"/metrics", "/metrics/objects", "/debug/pprof/cmdline", "/minik8s/v1/nodes/absent/images", "/minik8s/v1/masters", "/minik8s/v1/snapshot", "/v2/functions/default/f/manifests/latest"}
	nodes := []string{"/minik8s/v1/settings"}
	changed := []string{"/minik8s/v1/masters", "/minik8s/v1/masters/7", "/minik8s/v1/keys", "/minik8s/v1/nodes/absent/images", "/v2/functions/default/f/manifests/latest", "/debug/pprof/cmdline"} // by other methods
	all := slices.Concat(open, known, nodes, masters)
	for _, r := range c.routes {
		of := all
		if r.Method != http.MethodGet {
			of = slices.Concat(changed, known)
		}
		if !objectRoute[r.Path] && !slices.ContainsFunc(of, func(path string) bool { return matches(r.Path, path) }) {
			t.Errorf("no row asks for %s %s", r.Method, r.Path)
		}
	}
	for who, x := range map[string]struct {
		client        *http.Client
		header, value string
		refused       int
		may           []string
	}{
		"nobody":           {c.user(""), "", "", 401, open},
		"nobody as master": {c.user(""), "Impersonate-User", "admin", 403, nil},
		"a user":           {c.user("alice"), "", "", 403, slices.Concat(known, open)},
		"a node":           {c.user("system:node:n1", registry.GroupNodes), "", "", 403, slices.Concat(nodes, known, open)},
		"root":             {c.root(), "", "", 0, all},
		"root as a user":   {c.root(), "Impersonate-User", "alice", 403, slices.Concat(known, open)},
		"root as a group":  {c.root(), "Impersonate-Group", "a", 400, nil},
	} {
		var headers []string
		if x.header != "" {
			headers = []string{x.header, x.value}
		}
		if x.refused != 0 && x.may != nil {
			for _, path := range changed {
				for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
					if code, body := c.do(x.client, method, path, "{}", headers...); code != x.refused && code != http.StatusMethodNotAllowed {
						t.Errorf("%s: %s %s: %d %.200s", who, method, path, code, body)
					}
				}
			}
		}
		for _, path := range all {
			want := false
			for _, p := range x.may {
				want = want || p == path
			}
			code, body := c.do(x.client, "GET", path, "", headers...)
			if who == "nobody as master" && code == 401 {
				continue // where something must be shown, that is asked first
			}
			if (code == 200 || code == 404) != want || !want && code != x.refused {
				t.Errorf("%s: GET %s: %d %.200s", who, path, code, body)
			}
		}
	}
}
