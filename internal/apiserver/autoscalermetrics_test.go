package apiserver_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"minik8s/internal/api"
	"minik8s/internal/client"
	"minik8s/internal/client/local"
	"minik8s/internal/metrics/query"
	"minik8s/internal/registry"
)

// few is a Prometheus with one series, load, of pods in the namespace default.
func few(w http.ResponseWriter, r *http.Request) {
	data := `[]`
	switch {
	case strings.HasPrefix(r.URL.Path, "/api/v1/label/") && !strings.Contains(r.FormValue("match[]"), `"^`) && strings.Contains(r.FormValue("match[]"), `{__name__!~`) &&
		!strings.Contains(r.FormValue("match[]"), "node"):
		data = `["load"]`
	case r.FormValue("query") == `sum(load{namespace="default",pod="a"}) by (pod)`:
		data = `{"resultType":"vector","result":[{"metric":{"pod":"a"},"value":[1767268800,"7"]}]}`
	case r.URL.Path == "/api/v1/query":
		data = `{"resultType":"vector","result":[]}`
	}
	w.Write([]byte(`{"status":"success","data":` + data + `}`)) //nolint:errcheck // the client notices
}

// What Prometheus says is reached through the same door as everything, and told in discovery.
func TestMetricsForAutoscalers(t *testing.T) {
	prometheus := httptest.NewServer(http.HandlerFunc(few))
	defer prometheus.Close()
	var c *cluster
	source, err := query.New(query.Config{URL: prometheus.URL, Log: slog.New(slog.DiscardHandler), Kinds: func() *api.Table { return c.reg.Kinds() },
		Objects: func(ctx context.Context, k *api.Kind, o client.ListOptions) (*client.List, error) {
			return local.New(c.reg, registry.Part("metrics-query")).List(ctx, k, o)
		}})
	if err != nil {
		t.Fatal(err)
	}
	c = startAggregating(t, source.Groups()...)
	c.create("/api/v1/namespaces/default/pods", `{"metadata":{"name":"a","labels":{"app":"a"}},"spec":{"containers":[{"name":"c","image":"c"}]}}`)
	c.create("/api/v1/namespaces", `{"metadata":{"name":"other"}}`)
	robot, stranger := []string{"Authorization", "Bearer " + c.token("default", "robot")}, []string{"Authorization", "Bearer " + c.token("other", "robot")}
	root, nobody, node := c.root(), c.user(""), c.user("system:node:n1", registry.GroupNodes)
	autoscaler := c.user("system:podautoscaler-controller")
	const (
		custom   = "/apis/custom.metrics.k8s.io/v1beta2"
		old      = "/apis/custom.metrics.k8s.io/v1beta1"
		external = "/apis/external.metrics.k8s.io/v1beta1"
		load     = "/namespaces/default/pods/*/load"
		of       = `"describedObject":{"kind":"Pod","namespace":"default","name":"a","apiVersion":"v1"}`
	)
	for _, x := range []struct {
		name         string
		who          *http.Client
		method, path string
		headers      []string
		code         int
		says         string
	}{
		{"pods", root, "GET", custom + load + "?labelSelector=app%3Da", nil, 200, of},
		{"pods, as before", root, "GET", old + load, nil, 200, of},
		{"a pod", root, "GET", custom + "/namespaces/default/pods/a/load", nil, 200, `"value":"7"`},
		{"a namespace has none", root, "GET", custom + "/namespaces/default/metrics/load", nil, 404, "the server could not find the metric load for namespaces default"},
		{"no such metric", root, "GET", custom + "/namespaces/default/pods/a/loads", nil, 404, `"reason":"NotFound"`},
		{"none of a path", root, "GET", custom + "/pods", nil, 404, "not found"},
		{"outside", root, "GET", external + "/namespaces/default/load", nil, 200, `"items":[]`},
		{"outside, by POST", root, "POST", external + "/namespaces/default/load", nil, 405, "not supported"},
		{"deleted", root, "DELETE", custom + "/namespaces/default/pods/a/load", nil, 405, "not supported"},
		{"a query in a name", root, "GET", custom + "/namespaces/default/pods/a%22%7D%20or%20up%7B/load", nil, 400, "no value that a label or a name can have"},
		{"a query in a namespace", root, "GET", external + "/namespaces/a%22%7D%20or%20up%7B/load", nil, 400, "no value that a label or a name can have"},
		{"the autoscaler", autoscaler, "GET", custom + load, nil, 200, of},
		{"the autoscaler, outside", autoscaler, "GET", external + "/namespaces/default/load", nil, 200, `"items":[]`},
		{"the autoscaler changes nothing", autoscaler, "DELETE", custom + "/namespaces/default/pods/a/load", nil, 403, "Forbidden"},
		{"nobody", nobody, "GET", custom + load, nil, 401, "Unauthorized"},
		{"somebody", c.user("somebody"), "GET", custom + load, nil, 403, `cannot get resource \"pods/load\" in API group \"custom.metrics.k8s.io\" in the namespace \"default\"`},
		{"a node", node, "GET", external + "/namespaces/default/load", nil, 403, "Forbidden"},
		{"a pod's process in its namespace", nobody, "GET", custom + load, robot, 403, "may only read its own namespace"},
		{"and outside", nobody, "GET", external + "/namespaces/default/load", robot, 403, "may only read its own namespace"},
		{"and outside, by a watch", nobody, "GET", external + "/namespaces/default/load?watch=true", robot, 403, "may only read its own namespace"},
		{"and a Secret's name", nobody, "GET", external + "/namespaces/default/kube_secret_info", robot, 403, "may only read its own namespace"},
		{"and elsewhere", nobody, "GET", custom + load, stranger, 403, "may only read its own namespace"},
		{"and elsewhere, outside", nobody, "GET", external + "/namespaces/default/load", stranger, 403, "may only read its own namespace"},
		{"and everywhere", nobody, "GET", custom + "/namespaces/*/load", robot, 403, "may only read its own namespace"},
		{"and in no namespace", nobody, "GET", custom + "/nodes/*/load", robot, 403, "may only read its own namespace"},
		{"discovery", nobody, "GET", custom, robot, 200, `{"name":"pods/load","singularName":"","namespaced":true,"kind":"MetricValueList","verbs":["get"]}`},
		{"discovery, outside", nobody, "GET", external, robot, 200, `{"name":"load","singularName":"","namespaced":true,"kind":"ExternalMetricValueList","verbs":["get"]}`},
		{"all of discovery", root, "GET", "/apis", []string{"Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}, 200,
			`"subresources":[{"subresource":"load","responseKind":{"group":"custom.metrics.k8s.io","version":"v1beta2","kind":"MetricValueList"},"verbs":["get"]}]`},
		{"the groups", root, "GET", "/apis/custom.metrics.k8s.io", nil, 200, `"preferredVersion":{"groupVersion":"custom.metrics.k8s.io/v1beta2"`},
	} {
		code, body := c.do(x.who, x.method, x.path, "", x.headers...)
		if code != x.code || !strings.Contains(body, x.says) {
			t.Errorf("%s: %d %s\nwant %d %s", x.name, code, body, x.code, x.says)
		}
	}
	prometheus.Close()
	if code, body := c.do(root, "GET", custom+load, ""); code != 503 || !strings.Contains(body, "connection refused") || !strings.Contains(body, `"reason":"ServiceUnavailable"`) {
		t.Errorf("%d %s", code, body)
	}
	review := `{"spec":{"namespace":"default"}}`
	if _, body := c.do(nobody, "POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", review, robot...); strings.Contains(body, "metrics.k8s.io") {
		t.Error(body)
	}
}
