package apiserver_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/registry"
)

// here connects to the port on this machine, by something that is no more than a stream.
func here(ctx context.Context, _ *corev1.Pod, port int32) (io.ReadWriteCloser, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, err
	}
	return struct{ io.ReadWriteCloser }{conn}, nil
}

// inPod serves as a program in a pod would, and says its port.
func inPod(t *testing.T, secure bool, serve http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewUnstartedServer(serve)
	if secure {
		srv.StartTLS()
	} else {
		srv.Start()
	}
	t.Cleanup(srv.Close)
	u, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u.Port()
}

// proxied is a cluster with a pod whose only declared port is this one.
func proxied(t *testing.T, port string) *cluster {
	t.Helper()
	c := start(t)
	body := `{"metadata":{"name":"web"},"spec":{"nodeName":"n1","containers":[{"name":"c","image":"i","ports":[{"containerPort":` + port + `}]}]}}`
	if code, b := c.do(c.root(), "POST", "/api/v1/namespaces/default/pods", body); code != http.StatusCreated {
		t.Fatal(code, b)
	}
	return c
}

const ofPods = "/api/v1/namespaces/default/pods/"

// TestProxyPassesOn what a client asks of a pod: any method, path, query and body, and the answer.
func TestProxyPassesOn(t *testing.T) {
	echo := func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Expect") == "" {
			w.WriteHeader(http.StatusEarlyHints)
		}
		body, _ := io.ReadAll(req.Body) //nolint:errcheck // it is short
		w.Header().Set("X-Back", "1")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "%s %s %s", req.Method, req.URL.RequestURI(), body) //nolint:errcheck // the test sees what came
	}
	port, secure := inPod(t, false, echo), inPod(t, true, echo)
	c := proxied(t, port)
	root := c.root()
	for _, x := range []struct {
		method, path, body string
		code               int
		says               string
	}{
		{"GET", "web:" + port + "/proxy/", "", 418, "GET / "},
		{"GET", "web/proxy/", "", 418, "GET / "},
		{"GET", "http:web:" + port + "/proxy/a", "", 418, "GET /a "},
		{"GET", ":web:" + port + "/proxy/a", "", 418, "GET /a "},
		{"GET", "https:web:" + secure + "/proxy/a", "", 418, "GET /a "},
		{"GET", "web:" + port + "/proxy/a%2Fb//c/../d%25/?x=1&watch=true&y;z", "", 418, "GET /a%2Fb//c/../d%25/?x=1&watch=true&y;z "},
		{"POST", "web:" + port + "/proxy/a/b/c/d/e", "hello", 418, "POST /a/b/c/d/e hello"},
		{"PUT", "web:" + port + "/proxy", "hello", 418, "PUT / hello"},
		{"PATCH", "web:" + port + "/proxy/", "hello", 418, "PATCH / hello"},
		{"DELETE", "web:" + port + "/proxy/namespaces/x", "", 418, "DELETE /namespaces/x "},
		{"OPTIONS", "web:" + port + "/proxy/", "", 418, "OPTIONS / "},
		{"HEAD", "web:" + port + "/proxy/", "", 418, ""},
		{"GET", "nobody:" + port + "/proxy/", "", 404, `"nobody\" not found"`},
		{"GET", "web:http/proxy/", "", 400, "invalid pod request"},
		{"GET", "ftp:web:" + port + "/proxy/", "", 400, "invalid pod request"},
		{"GET", "a:b:c:d/proxy/", "", 400, "invalid pod request"},
		{"GET", "web:1/proxy/", "", 503, "error trying to reach service"},
		{"GET", "web/log/more", "", 404, ""},
		{"GET", "web/status/more", "", 404, ""},
	} {
		code, body := c.do(root, x.method, ofPods+x.path, x.body)
		if code != x.code || !strings.Contains(body, strings.Trim(x.says, `"`)) {
			t.Errorf("%s %s: %d %s, want %d %s", x.method, x.path, code, body, x.code, x.says)
		}
	}
	if code, body := c.do(root, "POST", ofPods+"web/proxy/", "hello", "Expect", "100-continue"); code != 418 || body != "POST / hello" {
		t.Errorf("who asks first whether to go on: %d %s", code, body)
	}
	root.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := root.Get("http://minik8s" + ofPods + "web:" + port + "/proxy?a=b")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close() //nolint:errcheck // it is empty
	if at := resp.Header.Get("Location"); resp.StatusCode != http.StatusMovedPermanently || at != ofPods+"web:"+port+"/proxy/?a=b" {
		t.Errorf("%s, Location %q", resp.Status, at)
	}
}

// TestProxyHeaders: what was shown to the API stays there; what a pod says of itself leads through the API.
func TestProxyHeaders(t *testing.T) {
	var got http.Header
	port := inPod(t, false, func(w http.ResponseWriter, req *http.Request) {
		got = req.Header.Clone()
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", "*")
		h.Set("Keep-Alive", "timeout=5")
		h.Set("Set-Cookie", "a=b")
		if to := req.URL.Query().Get("to"); to != "" {
			h.Set("Location", to)
			w.WriteHeader(http.StatusFound)
		}
	})
	c := proxied(t, port)
	root := c.root()
	root.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	ask := func(query string, headers ...string) *http.Response {
		t.Helper()
		req, err := http.NewRequest("GET", "http://minik8s"+ofPods+"web/proxy/x"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i+1 < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		resp, err := root.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close() //nolint:errcheck // it is empty
		return resp
	}
	resp := ask("", "Authorization", "Bearer secret", "Impersonate-User", "bob", "Impersonate-Group", registry.GroupMasters, "X-Mine", "1",
		"Connection", "X-Away", "X-Away", "1", "X-Forwarded-For", "192.0.2.7")
	if resp.StatusCode != 200 || resp.Header.Get("Set-Cookie") != "a=b" {
		t.Errorf("%s %v", resp.Status, resp.Header)
	}
	for _, name := range []string{"Access-Control-Allow-Origin", "Keep-Alive"} {
		if v := resp.Header.Get(name); v != "" {
			t.Errorf("%s: %q came back", name, v)
		}
	}
	for name, want := range map[string]string{"Authorization": "", "Impersonate-User": "", "Impersonate-Group": "", "X-Away": "", "X-Mine": "1",
		"X-Forwarded-Uri": ofPods + "web/proxy/x", "X-Forwarded-Host": "minik8s"} {
		if v := got.Get(name); v != want {
			t.Errorf("the pod sees %s: %q, want %q", name, v, want)
		}
	}
	for to, want := range map[string]string{
		"/login?a=b#c":                       ofPods + "web/proxy/login?a=b#c",
		"http://minik8s/a%2Fb":               ofPods + "web/proxy/a%2Fb",
		"http://web:" + port + "/":           ofPods + "web/proxy/",
		ofPods + "web/proxy/x/":              ofPods + "web/proxy/x/",
		"beside":                             "beside",
		"https://example.org/x":              "https://example.org/x",
		"http://minik8s" + ofPods + "web/pr": ofPods + "web/proxy" + ofPods + "web/pr",
	} {
		if at := ask("?to=" + url.QueryEscape(to)).Header.Get("Location"); at != want {
			t.Errorf("a redirect to %s: %q, want %q", to, at, want)
		}
	}
}

// TestProxyStreams: pieces come as they are made, in both directions, and who goes away is gone for the pod too.
func TestProxyStreams(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	gone, broken := make(chan struct{}), make(chan struct{})
	upgrader := websocket.Upgrader{Subprotocols: []string{"chat"}, CheckOrigin: func(*http.Request) bool { return true }}
	port := inPod(t, false, func(w http.ResponseWriter, req *http.Request) {
		switch req.URL.Path {
		case "/echo":
			rc := http.NewResponseController(w)
			rc.EnableFullDuplex() //nolint:errcheck // it can
			lines := bufio.NewScanner(req.Body)
			for lines.Scan() {
				fmt.Fprintln(w, lines.Text()) //nolint:errcheck // the test sees what comes
				rc.Flush()                    //nolint:errcheck // as above
			}
		case "/wait": // it says nothing until the client has gone
			cancel() // the client goes once the pod has heard of it
			<-req.Context().Done()
			close(gone)
		case "/broken":
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "half") //nolint:errcheck // as above
			close(broken)
		case "/ws":
			ws, err := upgrader.Upgrade(w, req, nil)
			if err != nil {
				return
			}
			defer ws.Close()                                                                         //nolint:errcheck // the test is over
			ws.WriteMessage(websocket.TextMessage, []byte(req.Header.Get("Sec-Websocket-Protocol"))) //nolint:errcheck // as above
			for {
				kind, data, err := ws.ReadMessage()
				if err != nil {
					return
				}
				ws.WriteMessage(kind, data) //nolint:errcheck // as above
			}
		}
	})
	c := proxied(t, port)
	admin := c.user("admin", registry.GroupMasters)
	base := "https://" + c.address + ofPods + "web/proxy"

	in, out := io.Pipe()
	req, err := http.NewRequest("POST", base+"/echo", in)
	if err != nil {
		t.Fatal(err)
	}
	answer := make(chan *http.Response, 1)
	go func() {
		resp, err := admin.Do(req)
		if err != nil {
			t.Error(err)
			close(answer)
			return
		}
		answer <- resp
	}()
	fmt.Fprintln(out, "one") //nolint:errcheck // the test sees what comes
	resp := <-answer
	if resp == nil {
		t.FailNow()
	}
	lines := bufio.NewScanner(resp.Body)
	for _, want := range []string{"one", "two"} { // "two" is sent when "one" is back
		if want == "two" {
			fmt.Fprintln(out, want) //nolint:errcheck // as above
		}
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("%q %v, want %s", lines.Text(), lines.Err(), want)
		}
	}
	out.Close()       //nolint:errcheck // it never fails
	resp.Body.Close() //nolint:errcheck // as above

	req, err = http.NewRequestWithContext(ctx, "GET", base+"/wait", nil)
	if err != nil {
		t.Fatal(err)
	}
	// An answer that comes while the client closes the connection is the server's, not the pod's.
	if resp, err := admin.Do(req); err == nil && ctx.Err() == nil {
		t.Errorf("a pod that says nothing has answered: %s", resp.Status)
	}
	select {
	case <-gone:
	case <-time.After(20 * time.Second):
		t.Error("the pod was not told that its client has gone")
	}

	resp, err = admin.Get(base + "/broken")
	if err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("half an answer is taken for a whole one: %q", data)
	}
	resp.Body.Close() //nolint:errcheck // it was read
	<-broken

	bearer := "base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte("secret"))
	d := websocket.Dialer{TLSClientConfig: admin.Transport.(*http.Transport).TLSClientConfig, Subprotocols: []string{bearer, "chat"}}
	ws, _, err := d.Dial("wss://"+c.address+ofPods+"web/proxy/ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close() //nolint:errcheck // the test is over
	if err := ws.WriteMessage(websocket.BinaryMessage, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"chat", "hello"} {
		ws.SetReadDeadline(time.Now().Add(20 * time.Second)) //nolint:errcheck // it never fails
		if _, data, err := ws.ReadMessage(); err != nil || string(data) != want {
			t.Errorf("%q %v, want %s", data, err, want)
		}
	}
}

// TestProxyPages: links of a page lead through the API, packed or not, and are there before the page is whole.
func TestProxyPages(t *testing.T) {
	const page, changed = `<a href="/x">x</a>`, `<a href="` + ofPods + `web/proxy/x">x</a>`
	more := make(chan struct{})
	port := inPod(t, false, func(w http.ResponseWriter, req *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		switch req.URL.Path {
		case "/plain":
			h.Set("Content-Type", "text/plain")
			io.WriteString(w, page) //nolint:errcheck // the test sees what comes
		case "/packed":
			h.Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			io.WriteString(z, page) //nolint:errcheck // as above
			z.Close()               //nolint:errcheck // as above
		case "/slow":
			io.WriteString(w, page)               //nolint:errcheck // as above
			http.NewResponseController(w).Flush() //nolint:errcheck // as above
			<-more
		default:
			h.Set("Content-Length", fmt.Sprint(len(page)))
			io.WriteString(w, page) //nolint:errcheck // as above
		}
	})
	c := proxied(t, port)
	root := c.root()
	for path, want := range map[string]string{"/": changed, "/packed": changed, "/plain": page} {
		if code, body := c.do(root, "GET", ofPods+"web/proxy"+path, ""); code != 200 || body != want {
			t.Errorf("%s: %d %s, want %s", path, code, body, want)
		}
	}
	if code, body := c.do(root, "HEAD", ofPods+"web/proxy/", ""); code != 200 || body != "" {
		t.Errorf("HEAD: %d %q", code, body)
	}
	resp, err := root.Get("http://minik8s" + ofPods + "web/proxy/slow")
	if err != nil {
		t.Fatal(err)
	}
	begin := make([]byte, len(changed))
	if _, err := io.ReadFull(resp.Body, begin); err != nil || string(begin) != changed {
		t.Errorf("%q %v", begin, err)
	}
	close(more)
	resp.Body.Close() //nolint:errcheck // it was read
}
