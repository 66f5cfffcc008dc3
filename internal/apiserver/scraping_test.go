package apiserver_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"minik8s/internal/registry"
)

// Prometheus' account learns what runs where and reads metrics, and nothing else; of nodes' kubelets it reaches what it
// has a right to, however the path is written.
func TestWhoMayScrape(t *testing.T) {
	c := start(t)
	c.create(nodesPath, `{"metadata":{"name":"n1"}}`)
	c.create("/api/v1/namespaces", `{"metadata":{"name":"other"}}`)
	c.create("/api/v1/namespaces", `{"metadata":{"name":"kube-system"}}`)
	scraper := c.token("kube-system", "prometheus")
	namesake, stranger := c.token("other", "prometheus"), c.token("default", "robot")
	const kubelet = nodesPath + "/n1/proxy"
	h := c.user("")
	for _, x := range []struct {
		token, method, path string
		code                int
		says                string
	}{
		{scraper, "GET", kubelet + "/metrics", 200, "go_goroutines"},
		{scraper, "HEAD", kubelet + "/metrics", 200, ""},
		{scraper, "GET", kubelet + "/metrics?x=/../pods", 200, "go_goroutines"},
		{scraper, "GET", kubelet + "/metrics/node", 200, "node_memory_MemTotal_bytes"},
		{scraper, "GET", kubelet + "/metrics/nothing", 404, ""},
		{scraper, "GET", kubelet + "/healthz", 200, "ok"},
		{scraper, "GET", kubelet + "/pods", 403, "nodes/proxy"},
		{scraper, "GET", kubelet, 403, "nodes/proxy"},
		{scraper, "GET", kubelet + "/", 403, "nodes/proxy"},
		{scraper, "GET", kubelet + "/metrics/", 403, "nodes/proxy"},
		{scraper, "GET", kubelet + "//metrics", 403, "nodes/proxy"},
		{scraper, "GET", kubelet + "/metrics//node", 403, "nodes/proxy"},
		{scraper, "GET", kubelet + "/metricsx", 403, "nodes/proxy"},
		{scraper, "GET", kubelet + "/metrics/../pods", 403, "nodes/proxy"},
		{scraper, "GET", kubelet + "/metrics/./node", 403, "nodes/proxy"},
		{scraper, "GET", kubelet + "/./pods", 403, "nodes/proxy"},
		{scraper, "GET", kubelet + "/metrics/%2e%2e/pods", 403, "nodes/proxy"},
		{scraper, "GET", kubelet + "/metrics%2f..%2fpods", 403, "nodes/proxy"},
		{scraper, "GET", kubelet + "/metrics/..%2fpods", 403, "nodes/proxy"},
		{scraper, "GET", kubelet + "/%6detrics", 403, "nodes/proxy"},
		{scraper, "GET", kubelet + "/metrics;/../pods", 403, "nodes/proxy"},
		{scraper, "GET", kubelet + "/metrics/..;/pods", 403, "nodes/proxy"},
		{scraper, "GET", kubelet + `/metrics/..%5cpods`, 403, "nodes/proxy"},
		{scraper, "GET", kubelet + "/exec/kube-system/x/c?command=id", 403, "nodes/proxy"},
		{scraper, "GET", kubelet + "/containerLogs/default/a/c", 403, "nodes/proxy"},
		{scraper, "GET", kubelet + "/api/v1.3/machine", 403, "nodes/proxy"},
		{scraper, "POST", kubelet + "/metrics", 403, "nodes/proxy"},
		{scraper, "DELETE", kubelet + "/metrics", 403, "nodes/proxy"},
		{scraper, "OPTIONS", kubelet + "/metrics", 403, "nodes/proxy"},
		{scraper, "GET", nodesPath + "/n1:10250/proxy/metrics", 403, "nodes/proxy"}, // whatever listens at a port
		{scraper, "GET", nodesPath + "/n1:2379/proxy/metrics", 403, "nodes/proxy"},
		{scraper, "GET", nodesPath + "/http:n1:/proxy/metrics", 403, "nodes/proxy"},
		{scraper, "GET", nodesPath + "/n1/metrics", 404, ""},
		{scraper, "GET", ofServices + "n1/proxy/metrics", 403, "services/proxy"},
		{scraper, "GET", ofPods + "n1/proxy/metrics", 403, "pods/proxy"},
		{scraper, "GET", nodesPath, 200, `"n1"`},
		{scraper, "GET", "/api/v1/pods", 200, ""},
		{scraper, "GET", "/api/v1/services", 200, ""},
		{scraper, "GET", "/api/v1/endpoints", 200, ""},
		{scraper, "GET", "/apis/discovery.k8s.io/v1/endpointslices", 200, ""},
		{scraper, "GET", "/apis/networking.k8s.io/v1/ingresses", 200, ""},
		{scraper, "GET", "/api/v1/secrets", 403, "secrets"},
		{scraper, "GET", "/api/v1/namespaces/kube-system/secrets", 403, "secrets"},
		{scraper, "GET", "/api/v1/configmaps", 403, "configmaps"},
		{scraper, "GET", "/api/v1/namespaces/default/pods/a/log", 403, "pods/log"},
		{scraper, "DELETE", nodesPath + "/n1", 403, "nodes"},
		{scraper, "DELETE", "/api/v1/namespaces/default/pods", 403, "pods"},
		{scraper, "GET", "/metrics", 200, "minik8s_api_requests_total"},
		{scraper, "GET", "/metrics/objects", 200, `kube_node_info{node="n1",`},
		{scraper, "POST", "/metrics/objects", 405, ""},
		{scraper, "GET", "/metrics/../debug/pprof/heap", 404, ""},
		{scraper, "GET", "/metrics/%2e%2e/debug/pprof/heap", 404, ""},
		{scraper, "GET", "/debug/pprof/../../metrics", 403, "/debug/pprof"},
		{scraper, "GET", "/debug/pprof/heap", 403, ""},
		{namesake, "GET", kubelet + "/metrics", 403, "nodes/proxy"},
		{namesake, "GET", "/metrics/objects", 403, "/metrics/objects"},
		{namesake, "GET", nodesPath, 403, "nodes"},
		{stranger, "GET", kubelet + "/metrics", 403, "nodes/proxy"},
		{stranger, "GET", kubelet + "/healthz", 403, "nodes/proxy"},
		{stranger, "GET", "/metrics", 403, "/metrics"},
		{stranger, "GET", "/metrics/objects", 403, "/metrics/objects"},
		{"", "GET", "/metrics/objects", 401, ""},
		{"", "GET", kubelet + "/metrics", 401, ""},
	} {
		var headers []string
		if x.token != "" {
			headers = []string{"Authorization", "Bearer " + x.token}
		}
		if code, body := c.do(h, x.method, x.path, "", headers...); code != x.code || !strings.Contains(body, x.says) {
			t.Errorf("%s %s: %d %s\nwant %d %s", x.method, x.path, code, body, x.code, x.says)
		}
	}
	for name, who := range map[string]*http.Client{"the node": c.user("system:node:n1", registry.GroupNodes), "somebody": c.user("alice", "people")} {
		for _, path := range []string{kubelet + "/metrics", kubelet + "/healthz", "/metrics/objects"} {
			if code, body := c.do(who, "GET", path, ""); code != 403 {
				t.Errorf("%s: %s: %d %s", name, path, code, body)
			}
		}
	}
	if code, body := c.do(c.user("admin", registry.GroupMasters), "GET", kubelet+"/pods", ""); code != 200 {
		t.Errorf("an administrator: %d %s", code, body)
	}

	// An upgrade is more than reading, on whatever path.
	if code, body := c.do(h, "GET", kubelet+"/metrics", "", "Authorization", "Bearer "+scraper, "Connection", "Upgrade", "Upgrade", "x"); code != 403 {
		t.Errorf("an upgrade: %d %s", code, body)
	}

	// Reviews say the same.
	for _, x := range []struct {
		sub     string
		allowed bool
	}{{"metrics", true}, {"stats", true}, {"healthz", true}, {"proxy", false}, {"", true}} {
		_, body := c.do(c.root(), "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", `{"spec":{"user":"system:serviceaccount:kube-system:prometheus",`+
			`"groups":["system:serviceaccounts","system:serviceaccounts:kube-system","system:authenticated"],"resourceAttributes":{"verb":"get","resource":"nodes","name":"n1","subresource":"`+x.sub+`"}}}`)
		var review struct{ Status struct{ Allowed bool } }
		if err := json.Unmarshal([]byte(body), &review); err != nil || review.Status.Allowed != x.allowed {
			t.Errorf("may it get nodes/%s: %s", x.sub, body)
		}
	}
}

// The page of objects has those that there are, each name once.
func TestObjectMetrics(t *testing.T) {
	c := start(t)
	c.create(nodesPath, `{"metadata":{"name":"n1"},"status":{"capacity":{"cpu":"2","memory":"1Gi","pods":"110"}}}`)
	c.create("/api/v1/namespaces/default/pods", `{"metadata":{"name":"web"},"spec":{"nodeName":"n1","containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"100m"}}}]}}`)
	c.create("/apis/apps/v1/namespaces/default/deployments", `{"metadata":{"name":"d"},"spec":{"replicas":3,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`)
	c.create("/api/v1/namespaces/default/secrets", `{"metadata":{"name":"hidden"},"stringData":{"password":"hunter2"}}`)
	page := func() string {
		code, body := c.do(c.root(), "GET", "/metrics/objects", "")
		if code != 200 {
			t.Fatal(code, body)
		}
		return body
	}
	// The page asks the cache, which hears of a write a moment after whoever wrote.
	until := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); !ok(); {
			if time.Now().After(end) {
				t.Fatal(what)
			}
		}
	}
	until("the Deployment is not there", func() bool { return strings.Contains(page(), `deployment="d"`) })
	all := page()
	for _, want := range []string{
		`kube_namespace_status_phase{namespace="default",phase="Active"} 1`,
		`kube_pod_status_phase{namespace="default",pod="web",uid="`,
		`resource="cpu",unit="core"} 0.1`,
		`kube_deployment_spec_replicas{namespace="default",deployment="d"} 3`,
	} {
		if !strings.Contains(all, want) {
			t.Errorf("without %s:\n%s", want, all)
		}
	}
	if strings.Contains(all, "hidden") || strings.Contains(all, "hunter2") {
		t.Error("it tells of a Secret")
	}
	types, samples := map[string]bool{}, map[string]bool{}
	for lines := bufio.NewScanner(strings.NewReader(all)); lines.Scan(); {
		if of, ok := strings.CutPrefix(lines.Text(), "# TYPE "); ok {
			if name, _, _ := strings.Cut(of, " "); types[name] {
				t.Errorf("%s comes twice", name)
			} else {
				types[name] = true
			}
		}
		series := lines.Text()[:max(0, strings.LastIndex(lines.Text(), " "))]
		if !strings.HasPrefix(series, "#") && samples[series] {
			t.Errorf("%s comes twice", series)
		}
		samples[series] = true
	}
	c.do(c.root(), "DELETE", "/api/v1/namespaces/default/pods/web?gracePeriodSeconds=0", "")
	until("a pod that is gone is still there", func() bool { return !strings.Contains(page(), `pod="web"`) })
}
