package query

import (
	"context"
	"encoding/pem"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"minik8s/internal/api"
)

const (
	oldPath  = "custom.metrics.k8s.io/v1beta1/"
	newPath  = "custom.metrics.k8s.io/v1beta2/"
	outside  = "external.metrics.k8s.io/v1beta1/"
	counters = `{__name__=~".+_total",__name__!~"container_.+"`
	gauges   = `{__name__!~".+_total|.+_bucket|container_.+"`
)

// usual is a Prometheus with series of pods, of a Service, of nodes and of none.
func usual(t *testing.T) *fake {
	return prometheusOf(t, map[string][]string{
		counters + `,pod!="",namespace!=""}`:   {"hits_total"},
		counters + `,namespace!=""}`:           {"hits_total"},
		gauges + `,pod!="",namespace!=""}`:     {"load", "queue.length", `up{} or vector(1) #`},
		gauges + `,service!="",namespace!=""}`: {"backlog"},
		gauges + `,node!=""}`:                  {"heat"},
		gauges + `,namespace!=""}`:             {"load", "backlog"},
	}, map[string]string{
		`sum(rate(hits_total{namespace="default",pod=~"web-1|web-2"}[2m])) by (pod)`:     vector("pod=web-2 0.3333333", "pod=web-1 2", "pod=web-3 9"),
		`sum(rate(hits_total{verb="GET",namespace="default",pod="web-1"}[2m])) by (pod)`: vector("pod=web-1 1"),
		`sum(load{namespace="default",pod=~"db|web-1|web-2"}) by (pod)`:                  vector("pod=db NaN", "pod=web-1 +Inf", "pod=web-2 -1.5"),
		`sum(load{namespace="default",pod="db"}) by (pod)`:                               vector("pod=db NaN"),
		`sum(load{namespace="default"}) by (namespace)`:                                  vector("namespace=default 7"),
		`sum(backlog{namespace="default",service="web"}) by (service)`:                   vector("service=web 1e3"),
		`sum(heat{node="n1"}) by (node)`:                                                 vector("node=n1 40"),
		`sum(load{namespace="default",pod="web-1"}) by (pod)`:                            `{"resultType":"vector","result":[{"metric":{"pod":"web-1"},"histogram":[1767268800,{"count":"3","sum":"6","buckets":[[0,"0","1","3"]]}]}]}`,
		`backlog{q="a",namespace="default"}`:                                             vector("__name__=backlog,q=a,i=2 2", "__name__=backlog,q=a,i=1 0.0004", "i=3 NaN"),
		`rate(hits_total{namespace="default"}[2m])`:                                      `{"resultType":"scalar","result":[1767268800,"4"]}`,
	})
}

func TestAnswers(t *testing.T) {
	s := source(t, config(usual(t).URL+"/prom/"))
	for _, x := range []struct{ path, want string }{
		{newPath + "namespaces/default/pods/*/hits?labelSelector=app%3Dweb", `{"kind":"MetricValueList","apiVersion":"custom.metrics.k8s.io/v1beta2","metadata":{},"items":[` +
			`{"describedObject":{"kind":"Pod","namespace":"default","name":"web-1","apiVersion":"v1"},"metric":{"name":"hits","selector":null},"timestamp":"2026-01-01T12:00:00Z","value":"2"},` +
			`{"describedObject":{"kind":"Pod","namespace":"default","name":"web-2","apiVersion":"v1"},"metric":{"name":"hits","selector":null},"timestamp":"2026-01-01T12:00:00Z","value":"333m"}]}`},
		{oldPath + "namespaces/default/pods/web-1/hits?metricLabelSelector=verb%3DGET", `"apiVersion":"custom.metrics.k8s.io/v1beta1","metadata":{},"items":[` +
			`{"describedObject":{"kind":"Pod","namespace":"default","name":"web-1","apiVersion":"v1"},"metricName":"hits","timestamp":"2026-01-01T12:00:00Z","value":"1","selector":{"matchLabels":{"verb":"GET"}}}]}`},
		{newPath + "namespaces/default/pods/*/load", `"items":[{"describedObject":{"kind":"Pod","namespace":"default","name":"web-2","apiVersion":"v1"},"metric":{"name":"load","selector":null},"timestamp":"2026-01-01T12:00:00Z","value":"-1500m"}]}`},
		{newPath + "namespaces/default/pods/*/load?labelSelector=app%3Dnone", `"items":[]`},
		{newPath + "namespaces/default/services/web/backlog", `"kind":"Service","namespace":"default","name":"web","apiVersion":"v1"},"metric":{"name":"backlog","selector":null},"timestamp":"2026-01-01T12:00:00Z","value":"1k"`},
		{newPath + "namespaces/default/metrics/load", `"items":[{"describedObject":{"kind":"Namespace","name":"default","apiVersion":"v1"}`},
		{oldPath + "namespaces/default/load", `{"describedObject":{"kind":"Namespace","name":"default","apiVersion":"v1"},"metricName":"load"`},
		{oldPath + "namespaces/*/load", `{"describedObject":{"kind":"Namespace","name":"default","apiVersion":"v1"},"metricName":"load"`},
		{newPath + "nodes/*/heat", `{"kind":"Node","name":"n1","apiVersion":"v1"}`},
		{newPath + "nodes/n1/heat", `"value":"40"`},
		{outside + "namespaces/default/backlog?labelSelector=q%3Da", `{"kind":"ExternalMetricValueList","apiVersion":"external.metrics.k8s.io/v1beta1","metadata":{},"items":[` +
			`{"metricName":"backlog","metricLabels":{"__name__":"backlog","i":"1","q":"a"},"timestamp":"2026-01-01T12:00:00Z","value":"0"},` +
			`{"metricName":"backlog","metricLabels":{"__name__":"backlog","i":"2","q":"a"},"timestamp":"2026-01-01T12:00:00Z","value":"2"}]}`},
		{outside + "namespaces/default/hits", `"items":[{"metricName":"hits","metricLabels":{},"timestamp":"2026-01-01T12:00:00Z","value":"4"}]`},
		{outside + "namespaces/other/backlog", `"items":[]`},
	} {
		if got, err := get(t, s, x.path); err != nil || !strings.Contains(got, x.want) {
			t.Errorf("%s: %v\n got %s\nwant %s", x.path, err, got, x.want)
		}
	}
	custom, current := names(t, s, 0)
	if custom != "namespaces/backlog false, namespaces/hits false, namespaces/load false, nodes/heat false, pods/hits true, pods/load true, services/backlog true" || !current {
		t.Error(custom, current)
	}
	if external, current := names(t, s, 2); external != "backlog true, hits true, load true" || !current {
		t.Error(external, current)
	}
}

func TestRefusals(t *testing.T) {
	s := source(t, config(usual(t).URL+"/prom"))
	for _, x := range []struct {
		path, want string // "$" at its end: nothing follows
		code       int32
	}{
		{newPath + "namespaces/default/pods/*/nothing", "the server could not find the metric nothing for pods", 404},
		{newPath + "namespaces/default/pods/db/load", "the server could not find the metric load for pods db", 404},       // NaN
		{newPath + "namespaces/default/pods/web-1/load", "the server could not find the metric load for pods web-1", 404}, // a native histogram
		{newPath + "namespaces/default/pods/*/load?metricLabelSelector=app.kubernetes.io%2Fname%3Da", "is no label of Prometheus", 400},
		{newPath + "namespaces/default/pods/gone/load", "the server could not find the metric load for pods gone", 404},
		{newPath + "namespaces/default/ships.example.com/*/load", "the server could not find the metric load for ships.example.com", 404},
		{newPath + "namespaces/default/nodes/n1/heat", "the server could not find the metric heat for nodes$", 404},
		{newPath + "pods/web-1/load", "the server could not find the metric load for pods$", 404},
		{newPath + "namespaces/default/metrics/heat", "the server could not find the metric heat for namespaces", 404},
		{outside + "namespaces/default/nothing", "the server could not find the metric nothing for nothing.external.metrics.k8s.io", 404},
		{outside + "load", "not found", 404},
		{newPath + "namespaces/default/pods/*/queue.length", "could not find the metric", 404},
		{newPath + "namespaces/default/pods/*/up{} or vector(1) #", "could not find the metric", 404},
		{newPath + `namespaces/default/pods/a"} or vector(1) #/load`, "is no value that a label or a name can have", 400},
		{newPath + `namespaces/default"}/pods/a/load`, "is no value that a label or a name can have", 400},
		{outside + `namespaces/x"} or load{a=~".*/load`, "is no value that a label or a name can have", 400},
		{outside + "namespaces/default/load?labelSelector=a%3D%22%7D", "labelSelector: ", 400},
		{newPath + "namespaces/default/pods/*/load?metricLabelSelector=a%3D%22%7D", "metricLabelSelector: ", 400},
		{outside + "namespaces/default/load?labelSelector=a%3E3", `the operator "gt" cannot be asked of Prometheus`, 400},
	} {
		got, err := get(t, s, x.path)
		var status apierrors.APIStatus
		if !errors.As(err, &status) || status.Status().Code != x.code || !strings.Contains(err.Error()+"$", x.want) {
			t.Errorf("%s: %s %v, want %d %s", x.path, got, err, x.code, x.want)
		}
	}
}

// Prometheus is asked for names only when somebody asks and they may be others, and for nothing between.
func TestWhatIsRemembered(t *testing.T) {
	f := usual(t)
	s := source(t, config(f.URL))
	now := time.Now()
	s.now = func() time.Time { return now }
	load := func() {
		t.Helper()
		if _, err := get(t, s, newPath+"nodes/n1/heat"); err != nil {
			t.Error(err)
		}
	}
	if q := f.questions(); len(q) != 0 {
		t.Errorf("asked before anybody asked: %q", q)
	}
	load()
	if q := f.questions(); !slices.Contains(q, gauges+`,node!=""}`) || len(q) != 13 || q[12] != `sum(heat{node="n1"}) by (node)` {
		t.Errorf("%d: %q", len(q), q)
	}
	now = now.Add(known - time.Second)
	load()
	names(t, s, 0)
	if q := f.questions(); len(q) != 1 {
		t.Errorf("%q", q)
	}
	// A metric that nobody knew of may be a new one.
	f.set(func() {
		f.names[gauges+`,node!=""}`] = []string{"heat", "wind"}
		f.answers[`sum(wind{node="n1"}) by (node)`] = vector("node=n1 3")
	})
	if got, err := get(t, s, newPath+"nodes/n1/wind"); err != nil || !strings.Contains(got, `"value":"3"`) {
		t.Error(got, err)
	}
	if q := f.questions(); len(q) != 13 {
		t.Errorf("%q", q)
	}
	for range 3 {
		if _, err := get(t, s, newPath+"nodes/n1/nothing"); !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	}
	if q := f.questions(); len(q) != 0 {
		t.Errorf("asked within a second: %q", q)
	}
	now = now.Add(known)
	load()
	if q := f.questions(); len(q) != 13 {
		t.Errorf("%q", q)
	}
	// When it is silent the names are the last that were known.
	refused := 0
	f.set(func() {
		f.serve = func(w http.ResponseWriter, _ *http.Request) {
			refused++
			http.Error(w, "too busy", http.StatusServiceUnavailable)
		}
	})
	now = now.Add(known)
	type moment struct {
		after time.Duration
		asked int
	}
	for _, x := range []moment{{0, 1}, {discoveryRetry - 1, 1}, {1, 2}} {
		now = now.Add(x.after)
		if list, current := names(t, s, 0); !strings.Contains(list, "nodes/wind") || current || refused != x.asked {
			t.Error(list, current, refused)
		}
	}
	for _, x := range []moment{{retry - 1, 2}, {1, 3}, {0, 3}} {
		now = now.Add(x.after)
		if _, err := get(t, s, newPath+"nodes/n1/heat"); !apierrors.IsServiceUnavailable(err) || refused != x.asked {
			t.Error(err, refused)
		}
	}
	s.custom.drop()
	if list, current := names(t, s, 0); list != "" || current {
		t.Error(list, current)
	}
}

func TestSilentPrometheus(t *testing.T) {
	f := usual(t)
	u := strings.Replace(f.URL, "http://", "http://user:secret@", 1)
	answers := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(code)
			w.Write([]byte(body)) //nolint:errcheck // the client notices
		}
	}
	for _, x := range []struct {
		serve http.HandlerFunc
		code  int32
		want  string
	}{
		{answers(503, "starting"), 503, "cannot answer: server_error: server error: 503"},
		{answers(401, "who?"), 503, "cannot answer: client_error: client error: 401"},
		{answers(200, "<html>"), 503, "cannot answer: bad_response"},
		{answers(302, ""), 503, "cannot answer: "},
		{answers(503, `{"status":"error","errorType":"timeout","error":"query timed out"}`), 503, "cannot answer: server_error: query timed out"},
		{answers(400, `{"status":"error","errorType":"bad_data","error":"parse error"}`), 500, "is refused by Prometheus: parse error"},
		{answers(422, `{"status":"error","errorType":"execution","error":"many-to-many"}`), 500, "many-to-many"},
		{answers(200, `{"status":"success","data":{"resultType":"matrix","result":[]}}`), 503, "does not answer: model.LabelValues"},
		{func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }, 503, "ended the connection"},
	} {
		f.set(func() { f.serve = x.serve })
		for _, path := range []string{newPath + "nodes/n1/heat", outside + "namespaces/default/load"} {
			_, err := get(t, source(t, config(u)), path)
			var status apierrors.APIStatus
			if !errors.As(err, &status) || status.Status().Code != x.code || !strings.Contains(err.Error(), x.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v, want %d %s", err, x.code, x.want)
			}
		}
	}
	f.Close()
	_, err := get(t, source(t, config(u)), newPath+"nodes/n1/heat")
	if !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), "connection refused") || strings.Contains(err.Error(), "user") {
		t.Error(err)
	}
}

// A query of a rule may be wrong, or make what has no single value for each object.
func TestWrongQueries(t *testing.T) {
	f := usual(t)
	cfg := config(f.URL)
	cfg.RulesFile = filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(cfg.RulesFile, []byte(`externalRules: [{seriesQuery: up, resources: {namespaced: false}, metricsQuery: 'up[5m]'}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	f.names["up"] = []string{"up"}
	f.answers["up[5m]"] = `{"resultType":"matrix","result":[]}`
	_, err := get(t, source(t, cfg), outside+"namespaces/default/up")
	if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "the rule's query up[5m] makes a matrix") {
		t.Error(err)
	}
	os.WriteFile(cfg.RulesFile, []byte(`rules: [{}]`), 0o600) //nolint:errcheck // New notices
	if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), "prometheus-rules: "+cfg.RulesFile+": rules[0].seriesQuery") {
		t.Error(err)
	}
}

// A rule that Prometheus refuses, and one whose objects nobody could tell apart, hinder no other.
func TestRulesOfNoUse(t *testing.T) {
	f := usual(t)
	f.names[`good{node!=""}`] = []string{"good"}
	f.answers[`good{node="n1"}`] = vector("node=n1 3")
	inner := f.Config.Handler
	f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.FormValue("match[]"), "bad") {
			w.WriteHeader(http.StatusBadRequest)
			w.Write([]byte(`{"status":"error","errorType":"bad_data","error":"parse error"}`)) //nolint:errcheck // the client notices
			return
		}
		inner.ServeHTTP(w, r)
	})
	cfg := config(f.URL)
	cfg.RulesFile = filepath.Join(t.TempDir(), "rules.yaml")
	resources := `resources: {namespaced: false, overrides: {node: {resource: node}, pod: {resource: pod}}}, metricsQuery: '<<.Series>>{<<.LabelMatchers>>}'`
	text := `rules: [{seriesQuery: 'bad{a=b}', ` + resources + `}, {seriesQuery: good, ` + resources + `}]`
	if err := os.WriteFile(cfg.RulesFile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := source(t, cfg)
	if got, err := get(t, s, newPath+"nodes/n1/good"); err != nil || !strings.Contains(got, `"value":"3"`) {
		t.Error(got, err)
	}
	if list, current := names(t, s, 0); list != "nodes/good false" || !current {
		t.Error(list, current)
	}
}

// Who asks leaves when his time is over; the catalog is made all the same, and an old one will do meanwhile.
func TestSlowPrometheus(t *testing.T) {
	f := usual(t)
	s := source(t, config(f.URL))
	now := time.Now()
	s.now = func() time.Time { return now }
	if _, err := get(t, s, newPath+"nodes/n1/heat"); err != nil {
		t.Fatal(err)
	}
	asked, free := make(chan struct{}, 100), make(chan struct{})
	inner := f.Config.Handler
	f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/label/") {
			asked <- struct{}{}
			<-free
		}
		inner.ServeHTTP(w, r)
	})
	now = now.Add(known)
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := s.custom.find(ctx, metric{api.Nodes.GR(), "new"})
		left <- err
	}()
	<-asked
	leave()
	if err := <-left; err == nil {
		t.Error("it found what nobody has")
	}
	old, cancel := context.WithCancel(t.Context())
	cancel()
	if from, err := s.custom.find(old, metric{api.Nodes.GR(), "heat"}); err != nil || from == nil {
		t.Error(from, err)
	}
	close(free)
	if from, err := s.custom.find(t.Context(), metric{api.Nodes.GR(), "heat"}); err != nil || from == nil || s.custom.at != now {
		t.Error(from, err)
	}
	if len(asked) != 11 {
		t.Errorf("%d further questions: the catalog was made more than once", len(asked))
	}
}

// A label that a template makes of any kind is asked for only where Prometheus has it.
func TestTemplateOfLabels(t *testing.T) {
	f := usual(t)
	f.labels = []string{"job", "kube_apps_deployment", "kube__namespace"}
	f.names[`{__name__=~"kube.+",kube_apps_deployment!="",kube__namespace!=""}`] = []string{"kube_replicas"}
	f.answers[`sum(kube_replicas{kube__namespace="default",kube_apps_deployment="web"})`] = vector("kube_apps_deployment=web 3")
	cfg := config(f.URL)
	cfg.RulesFile = filepath.Join(t.TempDir(), "rules.yaml")
	text := `rules: [{seriesQuery: '{__name__=~"kube.+"}', resources: {template: 'kube_<<.Group>>_<<.Resource>>'}, metricsQuery: 'sum(<<.Series>>{<<.LabelMatchers>>})'}]`
	if err := os.WriteFile(cfg.RulesFile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := source(t, cfg)
	if got, err := get(t, s, newPath+"namespaces/default/deployments.apps/web/kube_replicas"); err != nil || !strings.Contains(got, `"apiVersion":"apps/v1"},"metric":{"name":"kube_replicas","selector":null},"timestamp":"2026-01-01T12:00:00Z","value":"3"`) {
		t.Error(got, err)
	}
	if q := f.questions(); len(q) != 3 {
		t.Errorf("%q", q)
	}
	if list, _ := names(t, s, 0); list != "deployments.apps/kube_replicas true" {
		t.Error(list)
	}
}

// Over TLS by a CA of its own, with a token that is read again, which goes to nobody else.
func TestTokenAndCA(t *testing.T) {
	inner := usual(t)
	var got string
	tls := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		if r.URL.Path == "/away/api/v1/label/__name__/values" {
			http.Redirect(w, r, inner.URL+strings.TrimPrefix(r.URL.RequestURI(), "/away"), http.StatusTemporaryRedirect)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	defer tls.Close()
	dir := t.TempDir()
	cfg := config(tls.URL)
	cfg.CAFile, cfg.TokenFile = filepath.Join(dir, "ca"), filepath.Join(dir, "token")
	write := func(file string, content []byte) {
		t.Helper()
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), "prometheus-cafile: ") {
		t.Error(err)
	}
	write(cfg.CAFile, []byte("none"))
	if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), "has no certificate: expected PEM") {
		t.Error(err)
	}
	write(cfg.CAFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tls.Certificate().Raw}))
	if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), "prometheus-token-file: ") {
		t.Error(err)
	}
	write(cfg.TokenFile, []byte("a b"))
	if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), "expected one token") || strings.Contains(err.Error(), "a b") {
		t.Error(err)
	}
	write(cfg.TokenFile, []byte("first\n"))
	s := source(t, cfg)
	for _, token := range []string{"first", "second"} {
		write(cfg.TokenFile, []byte(token))
		if _, err := get(t, s, newPath+"nodes/n1/heat"); err != nil || got != "Bearer "+token {
			t.Errorf("%v, with %q", err, got)
		}
	}
	inner.questions()
	cfg.URL += "/away"
	if _, err := get(t, source(t, cfg), newPath+"nodes/n1/heat"); !apierrors.IsServiceUnavailable(err) || len(inner.questions()) > 0 {
		t.Error(err)
	}
	cfg.CAFile = ""
	if _, err := get(t, source(t, cfg), newPath+"nodes/n1/heat"); !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), "certificate") || strings.Contains(err.Error(), "second") {
		t.Error(err)
	}
}

func TestQuantities(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 1.0005: "1001m", -0.25: "-250m", 1e12: "1T", 9.3e15: "9223372036854775807m", -1e30: "-9223372036854775807m",
		math.NaN(): "", math.Inf(1): "", math.Inf(-1): ""} {
		q, ok := quantity(model.SampleValue(v))
		if ok != (want != "") || ok && q.String() != want {
			t.Errorf("%v: %s %v, want %s", v, q.String(), ok, want)
		}
	}
}
