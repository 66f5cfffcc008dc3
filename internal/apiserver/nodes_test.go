package apiserver_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"minik8s/internal/apiserver/nodes"
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
	kubelets := nodes.Kubelets(find, cert, c.ca.Pool())
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
