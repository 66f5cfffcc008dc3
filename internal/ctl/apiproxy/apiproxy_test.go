package apiproxy

import (
	"bufio"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"minik8s/internal/client/remote"
	"minik8s/internal/ctl/exit"
)

var defaults = Filter{AcceptHosts: DefaultAcceptHosts, AcceptPaths: DefaultAcceptPaths, RejectPaths: DefaultRejectPaths, RejectMethods: DefaultRejectMethods}

// server is an API that says what it was asked, over HTTP/2 where it can; a client of it; and this package's answers.
func server(t *testing.T, prefix string, f Filter) string { return serverFor(t, prefix, f, "mine") }

func serverFor(t *testing.T, prefix string, f Filter, token string) string {
	t.Helper()
	upgrader := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	api := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "SPDY/3.1" {
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
			rw.Flush()
			io.Copy(conn, rw)
			return
		}
		if r.Header.Get("Upgrade") != "" {
			ws, err := upgrader.Upgrade(w, r, nil)
			if err != nil {
				return
			}
			defer ws.Close()
			ws.WriteMessage(websocket.TextMessage, []byte(r.Header.Get("Authorization")))
			return
		}
		if r.URL.Path == "/root/slow" {
			http.NewResponseController(w).Flush()
			io.WriteString(w, "first\n")
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "%s %s %s %s", r.Method, r.URL.RequestURI(), r.Header.Get("Authorization"), r.Proto)
	}))
	api.EnableHTTP2 = true
	api.StartTLS()
	t.Cleanup(api.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})
	client, err := remote.New(remote.Config{Server: api.URL + "/root/", CA: ca, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	h, err := Handler(client, prefix, f)
	if err != nil {
		t.Fatal(err)
	}
	l, err := Listen(t.Context(), "127.0.0.1", 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- Serve(ctx, l, h) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

func ask(t *testing.T, method, at, path, host string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+at+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if host != "" {
		req.Host = host
	}
	req.Header.Set("Authorization", "Bearer somebody else's")
	resp, err := (&http.Client{Timeout: 20 * time.Second}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// What is passed on reaches the API as it was asked, with the user's own credentials; what the filters keep out does not.
func TestFilters(t *testing.T) {
	const pod = "/api/v1/namespaces/default/pods/p"
	readers := defaults
	readers.RejectMethods = "^POST$,^DELETE$"
	only := defaults
	only.AcceptPaths = "^/version"
	for _, x := range []struct {
		prefix, method, path, host string
		filter                     Filter
		code                       int
		says                       string
	}{
		{"/", "GET", pod + "?a=b", "", defaults, 418, "GET /root" + pod + "?a=b Bearer mine HTTP/2.0"},
		{"/", "DELETE", pod, "localhost:8001", defaults, 418, "DELETE /root"},
		{"/", "GET", pod + "%2Fx", "[::1]", defaults, 418, "/pods/p%2Fx "},
		{"/", "GET", pod, "evil.example", defaults, 403, "--accept-hosts"},
		{"/", "GET", pod, "localhost.evil.example:80", defaults, 403, ""},
		{"/", "POST", pod + "/exec?command=x", "", defaults, 403, "--reject-paths"},
		{"/", "GET", pod + "/ex%65c", "", defaults, 403, ""},
		{"/", "GET", pod + "/attach", "", defaults, 403, ""},
		{"/", "GET", pod + "/log", "", defaults, 418, ""},
		{"/", "GET", "/api/v1/nodes/n/proxy/exec/default/p/c", "", defaults, 403, ""},
		{"/", "GET", "/api/v1/nodes/n/proxy//attach/default/p/c", "", defaults, 403, ""},
		{"/", "GET", "/api/v1/nodes/n/proxy/healthz", "", defaults, 418, ""},
		{"/", "POST", pod, "", readers, 403, ""},
		{"/", "GET", pod, "", readers, 418, ""},
		{"/", "GET", pod, "", only, 403, ""},
		{"/", "GET", "/version", "", only, 418, ""},
		{"/", "GET", pod, "", Filter{AcceptPaths: ".*"}, 403, ""}, // no host is accepted
		{"/k8s/", "GET", "/k8s" + pod, "", defaults, 418, "GET /root" + pod + " "},
		{"/k8s/", "GET", "/k8s", "", defaults, 418, "GET /root/ "},
		{"/k8s/", "GET", pod, "", defaults, 404, ""},
		{"/k8s/", "GET", "/k8sx" + pod, "", defaults, 404, ""},
		{"/k8s/", "GET", "/k8s" + pod + "/exec", "", defaults, 403, ""},
	} {
		code, body := ask(t, x.method, server(t, x.prefix, x.filter), x.path, x.host)
		if code != x.code || !strings.Contains(body, x.says) {
			t.Errorf("%s %s (prefix %s, host %q): %d %s; want %d %s", x.method, x.path, x.prefix, x.host, code, body, x.code, x.says)
		}
	}
	if _, err := Handler(nil, "/", Filter{AcceptHosts: "("}); exit.CodeOf(err) != exit.Usage || !strings.Contains(err.Error(), "--accept-hosts") {
		t.Error(err)
	}
}

// Streams come while they last, and a connection is taken over where the API wants that, though it speaks HTTP/2.
func TestStreams(t *testing.T) {
	at := server(t, "/", defaults)
	resp, err := http.Get("http://" + at + "/slow")
	if err != nil {
		t.Fatal(err)
	}
	begin := make([]byte, 6)
	if _, err := io.ReadFull(resp.Body, begin); err != nil || string(begin) != "first\n" {
		t.Errorf("%q %v", begin, err)
	}
	resp.Body.Close()
	ws, _, err := websocket.DefaultDialer.Dial("ws://"+at+"/api/v1/namespaces/default/pods/p/portforward", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	ws.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, text, err := ws.ReadMessage(); err != nil || string(text) != "Bearer mine" {
		t.Errorf("%q %v", text, err)
	}
}

// A stream of kubectl's, which Go's HTTP/2 does not know, is passed on both ways.
func TestTakesOverConnections(t *testing.T) {
	conn, err := net.Dial("tcp", server(t, "/", defaults))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	fmt.Fprintf(conn, "POST /api/v1/namespaces/default/pods/p/portforward HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\n\r\n")
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(resp, err)
	}
	fmt.Fprintln(conn, "hello")
	if line, err := in.ReadString('\n'); err != nil || line != "hello\n" {
		t.Errorf("%q %v", line, err)
	}
}

// What a client of the port shows as its own does not reach the API.
func TestClientsHaveNoCredentials(t *testing.T) {
	if _, body := ask(t, "GET", serverFor(t, "/", defaults, ""), "/version", ""); body != "GET /root/version  HTTP/2.0" {
		t.Errorf("%q", body)
	}
}

// What cannot be reached is said.
func TestUnreachable(t *testing.T) {
	client, err := remote.New(remote.Config{Server: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	h, err := Handler(client, "/", defaults)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/version", nil))
	if w.Code != http.StatusBadGateway || !strings.Contains(w.Body.String(), "127.0.0.1:1") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
