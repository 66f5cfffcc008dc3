package apiserver_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/labstack/echo/v4"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/apiserver/nodes"
	"minik8s/internal/certs"
	"minik8s/internal/kubelet/cri"
	"minik8s/internal/kubelet/server"
	"minik8s/internal/kubelet/server/servertest"
	"minik8s/internal/registry"
)

const nodesPath = "/api/v1/nodes"

// The API server believes a kubelet only with a certificate for the name of its Node, whatever address the Node has,
// and says why a node cannot be reached.
func TestKubeletIsWhoItSaysItIs(t *testing.T) {
	c := start(t)
	right := servertest.Start(t, c.ca, server.Config{Pods: func() server.Pods { return talkers{} }}, "right")
	cert := servertest.Cert(t)(c.ca.Client(t.TempDir(), "client", "apiserver", registry.GroupMasters))
	addresses := map[string]string{"right": right, "wrong": right, "away": "127.0.0.1:1"}
	find := func(_ context.Context, node string) (string, error) {
		if a := addresses[node]; a != "" {
			return a, nil
		}
		return "", errors.New("it has no address")
	}
	kubelets := nodes.Kubelets(find, certs.Use(cert), c.ca.Pool())
	t.Cleanup(kubelets.(*http.Transport).CloseIdleConnections)
	for node, says := range map[string]string{"right": "", "wrong": "certificate is valid for right", "away": "connection refused", "none": "it has no address"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+node+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := kubelets.RoundTrip(req)
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %v; want %q", node, err, says)
		}
		if err == nil {
			resp.Body.Close() //nolint:errcheck // nothing is read
		}
	}
}

// A kubelet is found by what its Node object says of it.
func TestFindsKubeletByItsNode(t *testing.T) {
	c := start(t)
	find := nodes.ByNode(c.reg)
	if _, err := find(t.Context(), "n1"); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("a node that is not there: %v", err)
	}
	if code, body := c.do(c.root(), "POST", nodesPath, `{"metadata":{"name":"n1"}}`); code != http.StatusCreated {
		t.Fatal(code, body)
	}
	if _, err := find(t.Context(), "n1"); err == nil || !strings.Contains(err.Error(), "not reported its address") {
		t.Errorf("a node without a kubelet: %v", err)
	}
	status := `{"status":{"addresses":[{"type":"Hostname","address":"n1"},{"type":"InternalIP","address":"10.0.0.7"}],"daemonEndpoints":{"kubeletEndpoint":{"Port":10250}}}}`
	if code, body := c.do(c.root(), "PATCH", nodesPath+"/n1/status", status, "Content-Type", "application/merge-patch+json"); code != http.StatusOK {
		t.Fatal(code, body)
	}
	if at, err := find(t.Context(), "n1"); err != nil || at != "10.0.0.7:10250" {
		t.Errorf("%s, %v", at, err)
	}
}

// deaf are pods whose programs read nothing, and say when they are ended.
type deaf struct {
	servertest.NoPods
	ended chan struct{}
}

func (deaf) Connectable(string, string, string) error { return nil }

func (d deaf) Exec(ctx context.Context, _, _, _ string, _ cri.ExecConfig) (int32, error) {
	<-ctx.Done()
	close(d.ended)
	return 0, ctx.Err()
}

// What a client runs at a kubelet ends when the client disconnects.
func TestDisconnectReachesTheKubelet(t *testing.T) {
	pods := deaf{ended: make(chan struct{})}
	c := startWith(t, 0, pods)
	if code, body := c.do(c.root(), "POST", "/api/v1/namespaces/default/pods",
		`{"metadata":{"name":"p"},"spec":{"nodeName":"n1","containers":[{"name":"c","image":"i"}]}}`); code != http.StatusCreated {
		t.Fatal(code, body)
	}
	d := websocket.Dialer{TLSClientConfig: c.user("admin", registry.GroupMasters).Transport.(*http.Transport).TLSClientConfig.Clone(), Subprotocols: []string{"v5.channel.k8s.io"}}
	ws, _, err := d.Dial("wss://"+c.address+"/api/v1/namespaces/default/pods/p/exec?command=x&stdin=1&stdout=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	ws.NetConn().(*tls.Conn).NetConn().Close() //nolint:errcheck // as a client that is killed
	select {
	case <-pods.ended:
	case <-time.After(time.Minute):
		t.Fatal("the program still runs")
	}
}

// liar is a kubelet that somebody has taken over.
func liar(t *testing.T, c *cluster, answer http.HandlerFunc) {
	t.Helper()
	srv := httptest.NewUnstartedServer(answer)
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{servertest.Cert(t)(c.ca.Server(t.TempDir(), "kubelet", []string{"n1"}))}}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	c.kubelets.to = srv.Listener.Addr().String()
}

// What a kubelet answers that makes no sense reaches no client: no redirect, no cookie, no code of its own making.
func TestKubeletThatLies(t *testing.T) {
	c := start(t)
	if code, body := c.do(c.root(), "POST", "/api/v1/namespaces/default/pods",
		`{"metadata":{"name":"p"},"spec":{"nodeName":"n1","containers":[{"name":"c","image":"i"}]}}`); code != http.StatusCreated {
		t.Fatal(code, body)
	}
	if code, body := c.do(c.root(), "POST", nodesPath, `{"metadata":{"name":"n1"}}`); code != http.StatusCreated {
		t.Fatal(code, body)
	}
	const pod = "/api/v1/namespaces/default/pods/p"
	for what, x := range map[string]struct {
		answer http.HandlerFunc
		code   int
		says   string
	}{
		"a redirect": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "https://elsewhere.example/")
			w.Header().Set("Set-Cookie", "a=b")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, http.StatusServiceUnavailable, "makes no sense"},
		"a code of its own": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusConflict)
			io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"as it says","code":99999}`) //nolint:errcheck // the test sees what comes
		}, http.StatusConflict, "as it says"},
		"no Status": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "teapot", http.StatusTeapot) }, http.StatusTeapot, "teapot"},
	} {
		liar(t, c, x.answer)
		for _, path := range []string{pod + "/log", pod + "/exec?command=x&stdout=1", "/minik8s/v1/nodes/n1/images"} {
			client := c.user("admin", registry.GroupMasters)
			client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			resp, err := client.Get("https://" + c.address + path)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != x.code || !strings.Contains(string(body), x.says) || resp.Header.Get("Location") != "" || resp.Header.Get("Set-Cookie") != "" {
				t.Errorf("%s, %s: %v %s %v %s", what, path, err, resp.Status, resp.Header, body)
			}
			resp.Body.Close() //nolint:errcheck // it was read
		}
	}
	// An upgrade is an upgrade, or an error.
	liar(t, c, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }) //nolint:errcheck // the test sees what comes
	d := websocket.Dialer{TLSClientConfig: c.user("admin", registry.GroupMasters).Transport.(*http.Transport).TLSClientConfig.Clone(), Subprotocols: []string{"v5.channel.k8s.io"}}
	if _, resp, err := d.Dial("wss://"+c.address+pod+"/exec?command=x&stdout=1", nil); err == nil || resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("an ordinary answer to an upgrade: %v %v", resp, err)
	}
	// A log that breaks off does not end like one that is whole.
	liar(t, c, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "half")             //nolint:errcheck // as above
		http.NewResponseController(w).Flush() //nolint:errcheck // as above
		panic(http.ErrAbortHandler)
	})
	resp, err := c.user("admin", registry.GroupMasters).Get("https://" + c.address + pod + "/log")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("half a log ends cleanly: %q", text)
	}
	resp.Body.Close() //nolint:errcheck // it was read
	d.Subprotocols = nil
	ws, _, err := d.Dial("wss://"+c.address+pod+"/log", nil)
	for err == nil {
		_, _, err = ws.ReadMessage()
	}
	if !websocket.IsCloseError(err, websocket.CloseInternalServerErr) {
		t.Errorf("half a log on a WebSocket ends with %v", err)
	}
	// A node that is not there is away, whatever is asked of it.
	c.kubelets.missing = true
	for _, path := range []string{pod + "/log", pod + "/exec?command=x&stdout=1"} {
		if code, body := c.do(c.root(), "GET", path, ""); code != http.StatusServiceUnavailable || !strings.Contains(body, "n1") {
			t.Errorf("%s of a node that is not there: %d %s", path, code, body)
		}
	}
}

// The API server connects to no address that is not a pod's, also if a status says it.
func TestProxyDialsPodsOnly(t *testing.T) {
	for _, ip := range []string{"", "127.0.0.1", "::1", "::%lo", "fe80::1%lo", "169.254.169.254", "0.0.0.0", "224.0.0.1", "nonsense"} {
		h := nodes.Handler{WriteTimeout: time.Second, Log: slog.New(slog.DiscardHandler)}
		rec := httptest.NewRecorder()
		e := echo.New().NewContext(httptest.NewRequest(http.MethodGet, "/x/", nil), rec)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: corev1.PodStatus{PodIP: ip}}
		err := h.PodProxy(e.Response(), e.Request(), pod, "http", 80, "/")
		if err == nil || !strings.Contains(err.Error(), "address") {
			t.Errorf("%q: %v", ip, err)
		}
	}
}
