package query

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"minik8s/internal/aggregation"
	"minik8s/internal/api"
	"minik8s/internal/client"
)

// fake is a Prometheus as far as its HTTP API is asked here: what series there are, and what queries say.
type fake struct {
	*httptest.Server
	mu      sync.Mutex
	names   map[string][]string // of series, by match[]
	labels  []string
	answers map[string]string // the data of queries: {"resultType":...}
	asked   []string          // queries and matches, in order
	serve   http.HandlerFunc  // in the place of all this
}

func prometheusOf(t *testing.T, names map[string][]string, answers map[string]string) *fake {
	f := &fake{names: names, answers: answers}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.serve != nil {
		f.serve(w, r)
		return
	}
	var data any
	switch path := strings.TrimPrefix(r.URL.Path, "/prom"); path {
	case "/api/v1/query":
		q := r.FormValue("query")
		f.asked = append(f.asked, q)
		answer, ok := f.answers[q]
		if !ok {
			answer = vector()
		}
		data = json.RawMessage(answer)
	case "/api/v1/labels":
		data = f.labels
	case "/api/v1/label/__name__/values":
		m := r.FormValue("match[]")
		f.asked = append(f.asked, m)
		data = append([]string{}, f.names[m]...)
	default:
		http.NotFound(w, r)
		return
	}
	json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": data}) //nolint:errcheck // the client notices
}

func (f *fake) set(do func()) { f.mu.Lock(); defer f.mu.Unlock(); do() }

// questions are what was asked since the last call.
func (f *fake) questions() (out []string) {
	f.set(func() { out, f.asked = f.asked, nil })
	return out
}

// vector is the data of a query: label=value pairs and a value each, as {pod="a"} 1.
func vector(samples ...string) string {
	out := []any{}
	for _, s := range samples {
		text, value, _ := strings.Cut(s, " ")
		metric := map[string]string{}
		for pair := range strings.SplitSeq(text, ",") {
			if k, v, ok := strings.Cut(pair, "="); ok {
				metric[k] = v
			}
		}
		out = append(out, map[string]any{"metric": metric, "value": []any{1767268800.123, value}})
	}
	b, _ := json.Marshal(map[string]any{"resultType": "vector", "result": out}) //nolint:errcheck // it has only texts
	return string(b)
}

// objects are those of the tests: pods web-1, web-2 and db, a Service, a node.
func objects(_ context.Context, k *api.Kind, o client.ListOptions) (*client.List, error) {
	var all []api.Object
	meta := func(name, app string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": app}}
	}
	switch k {
	case api.Pods:
		all = []api.Object{&corev1.Pod{ObjectMeta: meta("db", "db")}, &corev1.Pod{ObjectMeta: meta("web-1", "web")}, &corev1.Pod{ObjectMeta: meta("web-2", "web")}}
	case api.Nodes:
		all = []api.Object{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}}
	case api.Namespaces:
		all = []api.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}}
	}
	all = slices.DeleteFunc(all, func(x api.Object) bool {
		return o.Namespace != "" && o.Namespace != x.GetNamespace() || o.Labels != nil && !o.Labels.Matches(labels.Set(x.GetLabels()))
	})
	return &client.List{Kind: k, Items: all}, nil
}

func config(url string) Config {
	table := api.NewTable(api.Builtin()...)
	return Config{URL: url, Objects: objects, Kinds: func() *api.Table { return table }, Log: slog.New(slog.DiscardHandler)}
}

func source(t *testing.T, cfg Config) *Source {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// get asks a source as the API server does, for what lies below /apis/. The error is that of Serve.
func get(t *testing.T, s *Source, path string) (string, error) {
	t.Helper()
	at, query, _ := strings.Cut(path, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	p := strings.Split(at, "/")
	for _, g := range s.Groups() {
		if g.Group != p[0] || g.Version != p[1] {
			continue
		}
		r := &aggregation.Request{Request: httptest.NewRequestWithContext(t.Context(), "GET", "/", nil), Verb: "get", Query: values,
			Encode: func(obj runtime.Object, _ func() *metav1.Table) (string, []byte, error) {
				b, err := json.Marshal(obj)
				return "application/json", b, err
			}}
		if p = p[2:]; p[0] == "namespaces" && len(p) > 2 {
			r.Namespace, p = p[1], p[2:]
		}
		p = append(p, "", "", "")
		r.Resource, r.Name, r.Subresource = p[0], p[1], p[2]
		w := httptest.NewRecorder()
		err := g.Serve(w, r)
		return w.Body.String(), err
	}
	t.Fatal("no group for", path)
	return "", nil
}

// names are those that discovery is told, of the group with this index.
func names(t *testing.T, s *Source, group int) (string, bool) {
	t.Helper()
	list, current := s.Groups()[group].Discover(t.Context())
	out := map[string]bool{}
	for _, r := range list {
		out[fmt.Sprint(r.Name, " ", r.Namespaced)] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(out)), ", "), current
}
