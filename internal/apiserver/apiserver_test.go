package apiserver_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/labstack/echo/v4"

	"minik8s/internal/api"
	"minik8s/internal/apiserver"
	"minik8s/internal/apiserver/nodes"
	"minik8s/internal/certs"
	"minik8s/internal/client"
	"minik8s/internal/client/local"
	"minik8s/internal/kubelet/server"
	"minik8s/internal/kubelet/server/servertest"
	"minik8s/internal/registry"
	"minik8s/internal/registry/registrytest"
	"minik8s/internal/registry/strategy"
	"minik8s/internal/store"
	"minik8s/internal/store/memory"
)

// cluster is an API over TLS and a socket.
type cluster struct {
	t        *testing.T
	reg      *registry.Registry
	kept     store.Store
	ca       *certs.Authority
	dir      string
	address  string
	kubelets *switchable
	masters  keeper
	said     notes // the server's log
	// patience is how long a client may take for a piece of an answer; 0: as always.
	patience time.Duration
	routes   []*echo.Route
}

func start(t *testing.T) *cluster { return startPatient(t, 0) }

func startPatient(t *testing.T, patience time.Duration) *cluster {
	return startWith(t, patience, talkers{})
}

// startWith has these pods on node n1; change may change what the server is made of.
func startWith(t *testing.T, patience time.Duration, pods server.Pods, change ...func(*apiserver.Config)) *cluster {
	t.Helper()
	// The second registry over one store, so that there is history from before its time.
	kept := memory.New()
	_, stop := registrytest.Start(t, kept)
	stop()
	authority := registrytest.Signer(t)
	reg, stop := registrytest.StartWith(t, kept, strategy.Settings{Tokens: authority})
	t.Cleanup(stop)
	c := &cluster{t: t, reg: reg, kept: kept, dir: t.TempDir(), patience: patience}
	var err error
	if c.ca, err = certs.OpenAuthority(c.dir, "test-ca"); err != nil {
		t.Fatal(err)
	}
	pair, err := c.ca.Server(c.dir, "apiserver", []string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	cert, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c.address = l.Addr().String()
	cfg := apiserver.Config{Registry: c.reg, Tokens: authority, Listener: l, Address: c.address, Cert: certs.Use(cert), ClientCA: c.ca.Pool(),
		Socket: filepath.Join(c.dir, "api.sock"), WriteTimeout: c.patience, Kubelets: c.toKubelets(pods), DialPod: here, Masters: &c.masters,
		Log: slog.New(slog.NewTextHandler(&c.said, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	for _, f := range change {
		f(&cfg)
	}
	srv := apiserver.New(cfg)
	c.routes = srv.Handler().(*echo.Echo).Routes()
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		if err := srv.Run(ctx, func() { close(ready) }); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	<-ready
	return c
}

// switchable finds the kubelet of every node at one address.
type switchable struct {
	to      string
	missing bool
}

// toKubelets reaches a kubelet with these pods as that of node n1.
func (c *cluster) toKubelets(pods server.Pods) http.RoundTripper {
	c.t.Helper()
	c.kubelets = &switchable{to: servertest.Start(c.t, c.ca, server.Config{Pods: func() server.Pods { return pods }}, "n1")}
	cert := servertest.Cert(c.t)(c.ca.Client(c.t.TempDir(), "client", "apiserver", registry.GroupMasters))
	tr := nodes.Kubelets(func(ctx context.Context, node string) (string, error) {
		if c.kubelets.missing {
			return nodes.ByNode(c.reg)(ctx, "missing")
		}
		return c.kubelets.to, nil
	}, certs.Use(cert), c.ca.Pool())
	tr.(*http.Transport).DisableKeepAlives = true // each request finds anew
	return tr
}

// root is a client on the socket.
func (c *cluster) root() *http.Client {
	return &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", filepath.Join(c.dir, "api.sock"))
		}}}
}

// user is a client over TLS with a certificate; none for an empty name.
func (c *cluster) user(name string, groups ...string) *http.Client {
	cfg := &tls.Config{RootCAs: c.ca.Pool()}
	if name != "" {
		pair, err := c.ca.Client(c.t.TempDir(), "user", name, groups...)
		if err != nil {
			c.t.Fatal(err)
		}
		cert, err := pair.TLS()
		if err != nil {
			c.t.Fatal(err)
		}
		cfg.Certificates = []tls.Certificate{cert}
	}
	return &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{TLSClientConfig: cfg, DisableKeepAlives: true}}
}

// do sends a request and gives the status code and body.
func (c *cluster) do(h *http.Client, method, path, body string, headers ...string) (int, string) {
	c.t.Helper()
	base := "http://minik8s"
	if h.Transport.(*http.Transport).TLSClientConfig != nil {
		base = "https://" + c.address
	}
	req, err := http.NewRequest(method, base+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := h.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

const cms = "/api/v1/namespaces/default/configmaps"

func TestRefusalsAreStatuses(t *testing.T) {
	c := start(t)
	root := c.root()
	for _, x := range []struct {
		name, method, path, body string
		code                     int
		says                     string
	}{
		{"no such path", "GET", "/apis/nothing/v1/things", "", 404, "could not find"},
		{"no such object", "GET", cms + "/none", "", 404, `configmaps \"none\" not found`},
		{"no such namespace", "POST", "/api/v1/namespaces/none/configmaps", `{"metadata":{"name":"a"}}`, 404, `namespaces \"none\" not found`},
		{"not JSON", "POST", cms, `{"metadata":`, 400, "not a valid ConfigMap"},
		{"not YAML", "POST", cms, "a: [", 400, "not valid YAML"},
		{"empty", "POST", cms, "", 400, "empty"},
		{"garbage", "POST", cms, "\x00\x01\x02\xff\xfe", 400, ""},
		{"broken protobuf", "POST", cms, "k8s\x00\xff\xff\xff", 400, "protobuf"},
		{"an array", "POST", cms, "[]", 400, "not a valid ConfigMap: expected an object, got a list"},
		{"an array, of a kind with dialects", "POST", "/api/v1/namespaces/default/pods", "[]", 400, "not a valid Pod: expected an object, got a list"},
		{"wrong type in a Binding", "POST", "/api/v1/namespaces/default/pods/p/binding", `{"target":{"name":[]}}`, 400, "not a valid Binding: target.name: expected a string, got a list"},
		{"wrong type in an Eviction", "POST", "/api/v1/namespaces/default/pods/p/eviction", "deleteOptions: {gracePeriodSeconds: soon}", 400, `deleteOptions.gracePeriodSeconds: expected a whole number, got the string \"soon\"`},
		{"wrong type in DeleteOptions", "DELETE", cms + "/none", `{"preconditions":[]}`, 400, "not a valid DeleteOptions: preconditions: expected an object, got a list"},
		{"another kind", "POST", cms, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a"}}`, 400, "Secret"},
		{"wrong type of a field", "POST", cms, `{"metadata":{"name":7}}`, 400, "metadata.name"},
		{"another namespace", "POST", cms, `{"metadata":{"name":"a","namespace":"b"}}`, 400, "does not match"},
		{"too large", "POST", cms, `{"metadata":{"name":"a"},"data":{"k":"` + strings.Repeat("x", 4<<20) + `"}}`, 413, ""},
		{"larger than a ConfigMap", "POST", cms, `{"metadata":{"name":"a"},"data":{"k":"` + strings.Repeat("x", 2<<20) + `"}}`, 422, "data"},
		{"wrong method", "PUT", cms, "{}", 405, "does not allow"},
		{"unknown method", "BREW", cms, "", 405, ""},
		{"bad limit", "GET", cms + "?limit=many", "", 400, "limit"},
		{"bad continue", "GET", cms + "?limit=1&continue=zzz", "", 400, "continue"},
		{"bad selector", "GET", cms + "?labelSelector=a%20in", "", 400, "labelSelector"},
		{"unknown field", "GET", cms + "?fieldSelector=spec.x%3D1", "", 400, "fieldSelector"},
		{"a revision from the future", "GET", cms + "?resourceVersion=99999999", "", 504, "Too large resource version"},
		{"no revision", "GET", cms + "?watch=1&resourceVersion=abc", "", 400, "resourceVersion"},
		{"unknown patch", "PATCH", cms + "/none", "{}", 415, "patches of type"},
		{"strict", "POST", cms + "?fieldValidation=Strict", `{"metadata":{"name":"a"},"date":{},"data":{"a":"1","a":"2"}}`, 400, "unknown field"},
		{"dry run of another kind", "POST", cms + "?dryRun=Some", `{"metadata":{"name":"a"}}`, 400, "dryRun"},
		{"strict, and all the rest", "POST", cms + "?fieldValidation=Strict", `{"metadata":{"name":"Bad_Name"},"date":{},"data":{"a b":"1"}}`, 400, "Bad_Name"},
		{"a body without a name", "PUT", cms + "/kube-root-ca.crt", `{"data":{}}`, 400, "metadata.name"},
		{"a status without a name", "PUT", "/api/v1/namespaces/default/pods/p/status", `{}`, 400, "metadata.name"},
		{"a service account that is not there", "POST", "/api/v1/namespaces/default/pods", `{"metadata":{"name":"p"},"spec":{"serviceAccountName":"none","containers":[{"name":"c","image":"i"}]}}`, 403, "service account"},
		{"a watch from the future", "GET", cms + "?watch=1&resourceVersion=99999999", "", 504, "Too large"},
		{"a protected namespace", "DELETE", "/api/v1/namespaces/default", "", 403, "may not be deleted"},
	} {
		t.Run(x.name, func(t *testing.T) {
			code, body := c.do(root, x.method, x.path, x.body)
			var st metav1.Status
			if err := json.Unmarshal([]byte(body), &st); err != nil || st.Kind != "Status" || int(st.Code) != code {
				t.Fatalf("%d: no Status: %.300s", code, body)
			}
			if code != x.code || !strings.Contains(body, x.says) {
				t.Errorf("%d %.400s\nwant %d with %q", code, body, x.code, x.says)
			}
		})
	}
}

func TestUnsupportedPatch(t *testing.T) {
	c := start(t)
	if code, body := c.do(c.root(), "PATCH", cms+"/none", "{}", "Content-Type", "application/other-patch+yaml"); code != 415 {
		t.Errorf("of an object that is not there: %d %s", code, body)
	}
	c.do(c.root(), "POST", cms, `{"metadata":{"name":"a"}}`)
	code, body := c.do(c.root(), "PATCH", cms+"/a", "{}", "Content-Type", "application/other-patch+yaml")
	if code != 415 || !strings.Contains(body, "strategic-merge-patch") {
		t.Fatalf("%d %s", code, body)
	}
	code, body = c.do(c.root(), "PATCH", cms+"/a", `[{"op":"remove","path":"/data/zzz"}]`, "Content-Type", "application/json-patch+json")
	if code != 422 || !strings.Contains(body, "zzz") || !strings.Contains(body, `\"a\"`) {
		t.Errorf("a JSON patch that does not fit: %d %s", code, body)
	}
}

// Slow and broken requests end, and the server goes on.
func TestSlowAndBrokenRequests(t *testing.T) {
	c := start(t)
	for _, raw := range []string{"", "GET", "\x16\x03\x01", "GET / HTTP/1.1\r\n", "POST " + cms + " HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"} {
		conn, err := net.Dial("unix", filepath.Join(c.dir, "api.sock"))
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, raw)         //nolint:errcheck // it may have been hung up on
		conn.(*net.UnixConn).CloseWrite() //nolint:errcheck // as above
		io.ReadAll(conn)                  //nolint:errcheck // whatever it says
		conn.Close()                      //nolint:errcheck // as above
	}
	huge, err := net.Dial("unix", filepath.Join(c.dir, "api.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer huge.Close()                                                                          //nolint:errcheck // the test is over
	fmt.Fprintf(huge, "GET / HTTP/1.1\r\nHost: x\r\nX: %s\r\n\r\n", strings.Repeat("h", 1<<20)) //nolint:errcheck // hung up on
	line, _ := bufio.NewReader(huge).ReadString('\n')                                           //nolint:errcheck // checked by its content
	if line != "" && !strings.Contains(line, "431") {
		t.Errorf("a header of 1 MiB was answered with %q", line)
	}
	if code, body := c.do(c.root(), "GET", "/healthz", ""); code != 200 || body != "ok" {
		t.Fatalf("afterwards: %d %s", code, body)
	}
}

func TestWhoMayDoWhat(t *testing.T) {
	c := start(t)
	sys := local.New(c.reg, registry.System)
	ctx := context.Background()
	for _, p := range []struct{ name, node string }{{"mine", "n1"}, {"theirs", "n2"}} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: p.name},
			Spec: corev1.PodSpec{NodeName: p.node, Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
		if _, err := sys.Create(ctx, pod, client.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	anonymous, admin := c.user(""), c.user("admin", registry.GroupMasters)
	node, other := c.user("system:node:n1", registry.GroupNodes), c.user("somebody")
	merge := []string{"Content-Type", "application/merge-patch+json"}
	const pods = "/api/v1/namespaces/default/pods"
	for _, x := range []struct {
		name         string
		who          *http.Client
		method, path string
		body         string
		code         int
	}{
		{"anybody: health", anonymous, "GET", "/healthz", "", 200},
		{"anybody: version", anonymous, "GET", "/version", "", 200},
		{"anybody: nothing else", anonymous, "GET", "/api", "", 401},
		{"anybody: no pods", anonymous, "GET", pods, "", 401},
		{"anybody: no metrics", anonymous, "GET", "/metrics", "", 401},
		{"admin: pods", admin, "GET", pods, "", 200},
		{"admin: metrics", admin, "GET", "/metrics", "", 200},
		{"somebody: discovery", other, "GET", "/api/v1", "", 200},
		{"somebody: no pods", other, "GET", pods, "", 403},
		{"somebody: no profile", other, "GET", "/debug/pprof/heap", "", 403},
		{"node: its pods", node, "GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1", "", 200},
		{"node: not all pods", node, "GET", "/api/v1/pods", "", 403},
		{"node: status of its pod", node, "PATCH", pods + "/mine/status", `{"status":{"phase":"Running"}}`, 200},
		{"node: not its spec", node, "PATCH", pods + "/mine", `{"metadata":{"labels":{"a":"b"}}}`, 403},
		{"node: not another's pod", node, "PATCH", pods + "/theirs/status", `{"status":{"phase":"Running"}}`, 403},
		{"node: no pods of its own making", node, "POST", pods, `{"metadata":{"name":"x"}}`, 403},
		{"node: its node", node, "POST", "/api/v1/nodes", `{"metadata":{"name":"n1"}}`, 201},
		{"node: not another", node, "POST", "/api/v1/nodes", `{"metadata":{"name":"n2"}}`, 403},
		{"node: no secrets", node, "GET", "/api/v1/secrets", "", 403},
		{"node: its lease", node, "POST", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", `{"metadata":{"name":"n1"}}`, 201},
		{"node: not another's lease", node, "POST", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", `{"metadata":{"name":"n2"}}`, 403},
	} {
		t.Run(x.name, func(t *testing.T) {
			if code, body := c.do(x.who, x.method, x.path, x.body, merge...); code != x.code {
				t.Errorf("%d %.300s, want %d", code, body, x.code)
			}
		})
	}
}

// A stranger's CA opens nothing.
func TestStrangersCertificate(t *testing.T) {
	c := start(t)
	mine := c.ca
	theirs, err := certs.OpenAuthority(t.TempDir(), "stranger")
	if err != nil {
		t.Fatal(err)
	}
	c.ca = theirs
	h := c.user("admin", registry.GroupMasters)
	cfg := h.Transport.(*http.Transport).TLSClientConfig
	cfg.RootCAs = mine.Pool()
	stranger := cfg.Certificates[0] // shown whatever the server asks for
	cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &stranger, nil }
	if resp, err := h.Get("https://" + c.address + "/healthz"); err == nil {
		resp.Body.Close() //nolint:errcheck // it should not be there
		t.Fatal("a certificate of another CA was accepted")
	}
}

func TestMediaTypes(t *testing.T) {
	c := start(t)
	root := c.root()
	c.do(root, "POST", cms, "metadata: {name: a}\ndata: {k: v}\n", "Content-Type", "application/yaml")
	t.Run("YAML", func(t *testing.T) {
		if _, body := c.do(root, "GET", cms+"/a", "", "Accept", "application/yaml"); !strings.Contains(body, "\ndata:\n  k: v\n") && !strings.HasPrefix(body, "apiVersion: v1\ndata:\n  k: v\n") {
			t.Error(body)
		}
	})
	t.Run("Table", func(t *testing.T) {
		_, body := c.do(root, "GET", cms, "", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json")
		var table metav1.Table
		if err := json.Unmarshal([]byte(body), &table); err != nil || table.Kind != "Table" || len(table.Rows) != 1 || table.Rows[0].Cells[0] != "a" {
			t.Error(body)
		}
	})
	t.Run("metadata", func(t *testing.T) {
		_, body := c.do(root, "GET", cms, "", "Accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")
		if !strings.Contains(body, `"kind":"PartialObjectMetadataList"`) || strings.Contains(body, `"data"`) {
			t.Error(body)
		}
	})
	t.Run("protobuf", func(t *testing.T) {
		s := protobuf.NewSerializer(api.Scheme, api.Scheme)
		_, body := c.do(root, "GET", cms+"/a", "", "Accept", "application/vnd.kubernetes.protobuf")
		obj, _, err := s.Decode([]byte(body), nil, nil)
		if err != nil || obj.(*corev1.ConfigMap).Data["k"] != "v" || obj.(*corev1.ConfigMap).ResourceVersion == "" {
			t.Fatal(err, obj)
		}
		cm := obj.(*corev1.ConfigMap)
		cm.Data["k"] = "w"
		var b bytes.Buffer
		if err := s.Encode(cm, &b); err != nil {
			t.Fatal(err)
		}
		if code, body := c.do(root, "PUT", cms+"/a", b.String(), "Content-Type", "application/vnd.kubernetes.protobuf"); code != 200 || !strings.Contains(body, `"k":"w"`) {
			t.Error(code, body)
		}
		_, body = c.do(root, "GET", cms, "", "Accept", "application/vnd.kubernetes.protobuf")
		list, _, err := s.Decode([]byte(body), nil, nil)
		if err != nil || len(list.(*corev1.ConfigMapList).Items) != 1 {
			t.Error(err, list)
		}
	})
	t.Run("discovery", func(t *testing.T) {
		for path, says := range map[string]string{"/api": `"versions":["v1"]`, "/apis": "coordination.k8s.io", "/api/v1": `"pods/log"`,
			"/apis/coordination.k8s.io": "preferredVersion", "/openapi/v3": "api/v1", "/openapi/v3/api/v1": "io.k8s.api.core.v1.Pod"} {
			if code, body := c.do(root, "GET", path, ""); code != 200 || !strings.Contains(body, says) {
				t.Errorf("%s: %d %.200s", path, code, body)
			}
		}
		_, body := c.do(root, "GET", "/api", "", "Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json")
		if !strings.Contains(body, `"kind":"APIGroupDiscoveryList"`) || !strings.Contains(body, `"resource":"pods"`) {
			t.Errorf("aggregated: %.300s", body)
		}
	})
}

// events reads lines of a watch.
func (c *cluster) watch(path string, headers ...string) *bufio.Scanner {
	c.t.Helper()
	req, err := http.NewRequest("GET", "http://minik8s"+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.root().Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { resp.Body.Close() }) //nolint:errcheck // it was only read
	sc := bufio.NewScanner(resp.Body)
	sc.Buffer(nil, 1<<22)
	return sc
}

func TestMediaTypesOfWatches(t *testing.T) {
	c := start(t)
	root := c.root()
	_, made := c.do(root, "POST", cms, `{"metadata":{"name":"a"}}`)
	var cm corev1.ConfigMap
	if err := json.Unmarshal([]byte(made), &cm); err != nil {
		t.Fatal(err)
	}
	plain := c.watch(cms + "?watch=1&resourceVersion=" + cm.ResourceVersion)
	table := c.watch(cms+"?watch=1", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	initial := c.watch(cms + "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
	c.do(root, "PATCH", cms+"/a", `{"data":{"k":"v"}}`, "Content-Type", "application/merge-patch+json")
	c.do(root, "DELETE", cms+"/a", "")
	lines := func(sc *bufio.Scanner, n int) string {
		var out []string
		for len(out) < n && sc.Scan() {
			out = append(out, sc.Text())
		}
		return strings.Join(out, "\n")
	}
	if got := lines(plain, 2); !strings.Contains(got, `{"type":"MODIFIED"`) || !strings.Contains(got, `{"type":"DELETED"`) {
		t.Errorf("plain: %s", got)
	}
	if got := lines(table, 3); !strings.Contains(got, `{"type":"ADDED","object":{"kind":"Table"`) || strings.Count(got, `"columnDefinitions":[]`) != 2 {
		t.Errorf("table: %s", got)
	}
	if got := lines(initial, 4); !strings.Contains(got, "k8s.io/initial-events-end") || strings.Index(got, "BOOKMARK") > strings.Index(got, "MODIFIED") {
		t.Errorf("initial: %s", got)
	}
	// What happened before this server began is in the store's history, until that is dropped.
	before := c.watch("/api/v1/namespaces?watch=1&resourceVersion=1")
	if got := lines(before, 2); !strings.Contains(got, `"name":"default"`) || strings.Count(got, `{"type":"ADDED"`) != 2 {
		t.Errorf("from before the start: %s", got)
	}
	if err := c.kept.Compact(t.Context(), c.reg.Revision()); err != nil {
		t.Fatal(err)
	}
	if code, body := c.do(root, "GET", cms+"?watch=1&resourceVersion=1", ""); code != 410 || !strings.Contains(body, `"reason":"Expired"`) {
		t.Errorf("too old: %d %s", code, body)
	}
}

// A name that looks like anything else is only a name.
func TestNamesInPaths(t *testing.T) {
	c := start(t)
	for _, path := range []string{cms + "/..%2f..%2fsecrets", cms + "/%00", cms + "/a/b/c/d", "/api/v1/namespaces//configmaps/a", "/api/v1/namespaces/d%65fault/configmaps/none", "/api/v1/namespaces/default/nodes/x"} {
		if code, body := c.do(c.root(), "GET", path, ""); code != 404 && code != 400 {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
}
