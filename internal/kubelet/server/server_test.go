package server_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/certs"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/server"
	"minik8s/internal/kubelet/server/servertest"
)

// onePod is a node with pod web, whose container c logs lines and runs nothing.
type onePod struct{ servertest.NoPods }

func (onePod) Pods() []*corev1.Pod {
	return []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u"}}}
}

func (onePod) Logs(_ context.Context, namespace, pod, container string, opts *corev1.PodLogOptions) (io.ReadCloser, error) {
	if pod != "web" {
		return nil, apierrors.NewNotFound(corev1.Resource("pods"), pod)
	}
	text := strings.Join([]string{namespace, pod, container}, " ")
	if opts.TailLines != nil && *opts.TailLines == 2 {
		text += " tail"
	}
	return io.NopCloser(strings.NewReader(text)), nil
}

func (onePod) Connectable(_, _, container string) error {
	return apierrors.NewBadRequest("container " + container + " is not running")
}

// measured is a runtime that only measures.
type measured struct{ cri.Images }

func (measured) Stats(context.Context, func(string) bool) ([]cri.Stats, error) {
	at := time.Unix(1e9, 0).UTC()
	uses := cri.Usage{CPU: 7e9, Memory: 9, WorkingSet: 8}
	return []cri.Stats{
		{PodUID: "u", Cgroup: "/m/podu", Time: at, Usage: uses, Network: &cri.Network{Interface: "eth0", Received: 5}},
		{PodUID: "u", Cgroup: "/m/podu/1234567890", Container: "c", ContainerID: "1234567890", Started: at, Time: at, Usage: uses},
		{PodUID: "gone", Cgroup: "/m/podg/2", Container: "c", ContainerID: "2", Time: at},
	}, nil
}

func (measured) Events(ctx context.Context) <-chan cri.Event {
	ended := make(chan cri.Event)
	context.AfterFunc(ctx, func() { close(ended) })
	return ended
}

func (measured) Pod(context.Context, string) (cri.Pod, error) { return cri.Pod{}, nil }

func (measured) Pods(context.Context) ([]cri.Pod, error) {
	return []cri.Pod{{UID: "u", Containers: []cri.Container{{ID: "1234567890", PodUID: "u", Cgroup: "/m/podu/1234567890", State: cri.Running, StartedAt: time.Unix(1e9, 0).UTC()}}}}, nil
}

func (measured) Files(context.Context) ([]cri.Files, error) { return nil, nil }

type fixture struct {
	ca      *certs.Authority
	address string
}

func start(t *testing.T, pods server.Pods) *fixture {
	t.Helper()
	ca, err := certs.OpenAuthority(t.TempDir(), "test-ca")
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{ca, servertest.Start(t, ca, server.Config{NodeName: "n1", Version: "v0.1.0", Pods: func() server.Pods { return pods }, Runtime: measured{}}, "n1")}
}

// as is a client with a certificate; none without a name.
func (f *fixture) as(t *testing.T, ca *certs.Authority, name string, groups ...string) *http.Client {
	t.Helper()
	cfg := &tls.Config{RootCAs: f.ca.Pool(), ServerName: "n1"}
	if name != "" {
		cfg.Certificates = []tls.Certificate{servertest.Cert(t)(ca.Client(t.TempDir(), "client", name, groups...))}
	}
	tr := &http.Transport{TLSClientConfig: cfg, DisableKeepAlives: true}
	return &http.Client{Transport: tr, Timeout: 20 * time.Second}
}

func get(t *testing.T, c *http.Client, url string) (int, string) {
	t.Helper()
	return do(t, c, http.MethodGet, url)
}

func do(t *testing.T, c *http.Client, method, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

var paths = []string{"/healthz", "/pods", "/stats/summary", "/metrics", "/metrics/cadvisor", "/metrics/resource", "/metrics/node",
	"/api/v1.3/machine", "/api/v2.1/stats/", "/containerLogs/default/web/c", "/exec/default/web/c?command=x&stdout=1",
	"/attach/default/web/c?stdout=1", "/portForward/default/web", "/minik8s/services/default/web",
	"/minik8s/dial/default/web?network=tcp&address=127.0.0.1:1", "/minik8s/lookup/default/web?name=x.&address=127.0.0.1:53", "/images", "/nonsense"}

// Nobody but masters gets anything from a kubelet, on any path.
func TestWhoMayAsk(t *testing.T) {
	f := start(t, onePod{})
	methods := []string{http.MethodGet, http.MethodPost, http.MethodDelete}
	other, err := certs.OpenAuthority(t.TempDir(), "test-ca") // the same name, another key
	if err != nil {
		t.Fatal(err)
	}
	for who, c := range map[string]*http.Client{"no certificate": f.as(t, nil, ""), "another CA": f.as(t, other, "admin", "system:masters")} {
		for _, path := range paths {
			if resp, err := c.Get("https://" + f.address + path); err == nil {
				t.Errorf("%s: %s answers %s", who, path, resp.Status)
				resp.Body.Close() //nolint:errcheck // nothing is read
			}
		}
	}
	for who, c := range map[string]*http.Client{"a node": f.as(t, f.ca, "system:node:n1", "system:nodes"), "somebody": f.as(t, f.ca, "alice", "people"),
		"who is only called so": f.as(t, f.ca, "system:masters")} {
		for _, path := range paths {
			for _, method := range methods {
				code, text := do(t, c, method, "https://"+f.address+path)
				var status metav1.Status
				if err := json.Unmarshal([]byte(text), &status); err != nil || code != http.StatusForbidden || status.Reason != metav1.StatusReasonForbidden {
					t.Errorf("%s: %s %s: %d %s", who, method, path, code, text)
				}
			}
		}
	}
}

func TestAnswers(t *testing.T) {
	f := start(t, onePod{})
	admin := f.as(t, f.ca, "apiserver", "system:masters")
	for _, x := range []struct {
		path string
		code int
		says string
	}{
		{"/healthz", 200, "ok"},
		{"/pods", 200, `"name":"web"`},
		{"/stats/summary", 200, `"containers":[{"name":"c","startTime":"2001-09-09T01:46:40Z","cpu":{"time":"2001-09-09T01:46:40Z","usageCoreNanoSeconds":7000000000},` +
			`"memory":{"time":"2001-09-09T01:46:40Z","usageBytes":9,"workingSetBytes":8,`},
		{"/stats/summary", 200, `"network":{"time":"2001-09-09T01:46:40Z","name":"eth0","rxBytes":5,`},
		{"/stats/summary?only_cpu_and_memory=true", 200, `"podRef":{"name":"web","namespace":"default","uid":"u"}`},
		{"/metrics/cadvisor", 200, `container_cpu_usage_seconds_total{cpu="total",container="c",id="/m/podu/1234567890",image="",name="1234567890",namespace="default",pod="web"} 7 1000000000000`},
		{"/metrics/cadvisor", 200, `container_network_receive_bytes_total{interface="eth0",container="",id="/m/podu",image="pause",name="k8s_POD_web_default_u_0",namespace="default",pod="web"} 5 `},
		{"/metrics/resource", 200, `pod_memory_working_set_bytes{namespace="default",pod="web"} 8 `},
		{"/metrics/node", 200, `node_memory_MemTotal_bytes `},
		{"/metrics", 200, `go_goroutines `},
		{"/api/v2.1/version", 200, `"v0.1.0"`},
		{"/api/v2.1/stats/m/podu?type=name&count=1", 200, `{"/m/podu":{"spec":{`},
		{"/api/v2.1/stats/nothing", 404, `no container`},
		{"/api/v1.3/docker/1234567890", 200, `"io.kubernetes.pod.name":"web"`},
		{"/api/v1.3/events/m?all_events=true&subcontainers=true", 200, `[{"container_name":"/m/podu/1234567890","timestamp":"2001-09-09T01:46:40Z","event_type":"containerCreation","event_data":{}}]`},
		{"/api/v1.3/nonsense", 404, `no container or request`},
		{"/containerLogs/default/web/c?tailLines=2", 200, "default web c tail"},
		{"/containerLogs/default/web/c?tailLines=x", 400, "not a positive number"},
		{"/containerLogs/default/other/c", 404, `"reason":"NotFound"`},
		{"/exec/default/web/c?stdout=1", 400, "at least 1 command"},
		{"/exec/default/web/c?command=x", 400, "at least one of stdin"},
		{"/exec/default/web/c?command=x&stdout=1", 400, "container c is not running"}, // before the upgrade
		{"/portForward/default/web", 400, "Upgrade request required"},
		{"/nonsense", 404, ""},
	} {
		if code, text := get(t, admin, "https://"+f.address+x.path); code != x.code || !strings.Contains(text, x.says) {
			t.Errorf("%s: %d %s; want %d, %s", x.path, code, text, x.code, x.says)
		}
	}
}

// While the kubelet starts, its server says so.
func TestStarting(t *testing.T) {
	f := start(t, nil)
	code, text := get(t, f.as(t, f.ca, "apiserver", "system:masters"), "https://"+f.address+"/healthz")
	if code != http.StatusServiceUnavailable || !strings.Contains(text, "starting") {
		t.Error(code, text)
	}
}
