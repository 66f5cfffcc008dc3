package metricsapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/api"
)

// served answers by path; what it was asked is kept.
type served struct {
	mu      sync.Mutex
	answers map[string]string
	asked   []string
	err     error
}

func (s *served) Get(_ context.Context, path string, query url.Values, into any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := query.Encode(); q != "" {
		path += "?" + q
	}
	s.asked = append(s.asked, path)
	if s.err != nil {
		return s.err
	}
	body, ok := s.answers[path]
	if !ok {
		return errors.New("the server could not find the requested resource")
	}
	return json.Unmarshal([]byte(body), into)
}

func (s *served) count() int { s.mu.Lock(); defer s.mu.Unlock(); return len(s.asked) }

func podMetrics(labels string, names ...string) string {
	var items []string
	for _, n := range names {
		l := ""
		if labels != "" {
			l = fmt.Sprintf(`,"labels":{%q:%q}`, labels, strings.TrimRight(n, "0123456789"))
		}
		items = append(items, fmt.Sprintf(`{"metadata":{"name":%q%s},"timestamp":"2026-01-01T12:00:00Z","window":"15s","containers":[
			{"name":"a","usage":{"cpu":"100m","memory":"64Mi"}},{"name":"b","usage":{"cpu":"20m"}}]}`, n, l))
	}
	return `{"items":[` + strings.Join(items, ",") + `]}`
}

const podsPath = "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods"

func selector(t testing.TB, text string) labels.Selector {
	s, err := labels.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func client(s *served) (*Client, *time.Time) {
	c := New(s, api.NewTable(api.Builtin()...))
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	c.now = func() time.Time { return now }
	return c, &now
}

func TestResource(t *testing.T) {
	s := &served{answers: map[string]string{podsPath + "?labelSelector=app%3Dweb": podMetrics("app", "web1", "web2")}}
	c, now := client(s)
	ctx, web := t.Context(), selector(t, "app=web")
	got, err := c.Resource(ctx, corev1.ResourceCPU, "default", web, "")
	if err != nil || len(got) != 2 || got["web1"].Value != 120 || got["web1"].Window != 15*time.Second || got["web1"].Timestamp.Hour() != 12 {
		t.Fatalf("%+v, %v", got, err)
	}
	if got, err := c.Resource(ctx, corev1.ResourceCPU, "default", web, "b"); err != nil || got["web2"].Value != 20 {
		t.Errorf("of a container: %+v, %v", got, err)
	}
	const absent = "failed to get container metrics: container typo not present in metrics for pod default/web"
	if got, err := c.Resource(ctx, corev1.ResourceCPU, "default", web, "typo"); err == nil || !strings.HasPrefix(err.Error(), absent) {
		t.Errorf("of a container that no pod has: %+v, %v", got, err)
	}
	if got, err := c.Resource(ctx, corev1.ResourceMemory, "default", web, ""); err != nil || len(got) != 0 {
		t.Errorf("a pod of which a container was not measured: %+v, %v", got, err)
	}
	if got, err := c.Resource(ctx, corev1.ResourceMemory, "default", web, "a"); err != nil || got["web1"].Value != 64<<20*1000 {
		t.Errorf("%+v, %v", got, err)
	}
	if s.count() != 1 {
		t.Errorf("asked %d times within a moment: %s", s.count(), s.asked)
	}
	*now = now.Add(keep)
	s.answers = nil
	_, err = c.Resource(ctx, corev1.ResourceCPU, "default", web, "")
	if err == nil || err.Error() != "unable to fetch metrics from resource metrics API: the server could not find the requested resource" {
		t.Error(err)
	}
}

// Several autoscalers in one namespace ask for the whole of it, once.
func TestManyAskOnce(t *testing.T) {
	s := &served{answers: map[string]string{podsPath: podMetrics("app", "a1", "a2", "b1", "c1"), podsPath + "?labelSelector=app%3Da": podMetrics("app", "a1", "a2")}}
	c, now := client(s)
	ask := func(app string, want int) {
		t.Helper()
		if got, err := c.Resource(t.Context(), corev1.ResourceCPU, "default", selector(t, "app="+app), ""); len(got) != want || want > 0 && err != nil {
			t.Errorf("%s: %+v, %v", app, got, err)
		}
	}
	ask("a", 2) // nobody else has asked yet
	for range 3 {
		ask("a", 2)
		ask("b", 1)
		ask("c", 1)
		ask("d", 0)
	}
	if s.count() != 2 {
		t.Errorf("asked %s", s.asked)
	}
	*now = now.Add(keep)
	ask("b", 1)
	ask("a", 2)
	if s.count() != 3 {
		t.Errorf("asked %s", s.asked)
	}
	*now = now.Add(2 * remember) // the others are gone
	ask("a", 2)
	if last := s.asked[len(s.asked)-1]; last != podsPath+"?labelSelector=app%3Da" {
		t.Errorf("asked %s", last)
	}
}

// A server that gives no labels is asked for each selector.
func TestWithoutLabels(t *testing.T) {
	s := &served{answers: map[string]string{podsPath: podMetrics("", "a1", "b1"), podsPath + "?labelSelector=app%3Da": podMetrics("", "a1"),
		podsPath + "?labelSelector=app%3Db": podMetrics("", "b1")}}
	c, _ := client(s)
	for range 3 {
		for _, app := range []string{"a", "b"} {
			if got, err := c.Resource(t.Context(), corev1.ResourceCPU, "default", selector(t, "app="+app), ""); err != nil || len(got) != 1 || got[app+"1"].Value != 120 {
				t.Errorf("%+v, %v", got, err)
			}
		}
	}
	if s.count() != 3 {
		t.Errorf("asked %s", s.asked)
	}
}

func TestCustomAndExternal(t *testing.T) {
	const custom, external = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/", "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/"
	value := func(name, v string) string {
		return fmt.Sprintf(`{"describedObject":{"name":%q},"timestamp":"2026-01-01T12:00:00Z","value":%q}`, name, v)
	}
	s := &served{answers: map[string]string{
		custom + "pods/*/requests?labelSelector=app%3Dweb&metricLabelSelector=verb%3DGET": `{"items":[` + value("web1", "1500m") + "," + value("web2", "2") + `]}`,
		custom + "services/web/hits":                    `{"items":[` + value("web", "10") + `]}`,
		custom + "ingresses.networking.k8s.io/in/hits":  `{"items":[]}`,
		custom + "metrics/load":                         `{"items":[` + value("default", "7") + `]}`,
		external + "queue%20length?labelSelector=q%3Da": `{"items":[{"value":"3"},{"value":"500m"}]}`,
	}}
	c, _ := client(s)
	ctx := t.Context()
	pods, err := c.Pods(ctx, "requests", "default", selector(t, "app=web"), selector(t, "verb=GET"))
	if err != nil || pods["web1"].Value != 1500 || pods["web2"].Value != 2000 || pods["web1"].Window != time.Minute {
		t.Errorf("%+v, %v", pods, err)
	}
	object := func(apiVersion, kind, name, metric string) string {
		v, err := c.Object(ctx, metric, "default", &autoscalingv2.CrossVersionObjectReference{APIVersion: apiVersion, Kind: kind, Name: name}, labels.Everything())
		return fmt.Sprint(v, " ", err)
	}
	for _, x := range [][2]string{
		{object("v1", "Service", "web", "hits"), "10000 <nil>"},
		{object("v1", "Namespace", "default", "load"), "7000 <nil>"},
		{object("networking.k8s.io/v1", "Ingress", "in", "hits"), "0 unable to fetch metrics from custom metrics API: the custom metrics API server returned 0 results when we asked for exactly one"},
		{object("example.com/v1", "Ship", "x", "hits"), `0 unable to fetch metrics from custom metrics API: no matches for kind "Ship" in group "example.com"`},
	} {
		if x[0] != x[1] {
			t.Errorf("got %s, want %s", x[0], x[1])
		}
	}
	if got, err := c.External(ctx, "queue length", "default", selector(t, "q=a")); err != nil || fmt.Sprint(got) != "[3000 500]" {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := c.External(ctx, "none", "default", labels.Everything()); err == nil || !strings.HasPrefix(err.Error(), "unable to fetch metrics from external metrics API: ") {
		t.Error(err)
	}
}
