package apiserver_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"minik8s/internal/registry"
)

const ofServices = "/api/v1/namespaces/default/services/"

// create makes an object by its collection's path.
func (c *cluster) create(path, body string) {
	c.t.Helper()
	if code, b := c.do(c.root(), "POST", path, body); code != http.StatusCreated {
		c.t.Fatal(path, code, b)
	}
}

// podWithAddress makes a pod that has an address, and the same for a status that says so.
func (c *cluster) podWithAddress(name, address string) {
	c.t.Helper()
	c.create("/api/v1/namespaces/default/pods", fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"nodeName":"n1","containers":[{"name":"c","image":"i"}]}}`, name))
	status := fmt.Sprintf(`{"status":{"podIP":%q,"podIPs":[{"ip":%q}]}}`, address, address)
	if code, b := c.do(c.root(), "PATCH", ofPods+name+"/status", status, "Content-Type", "application/merge-patch+json"); code != 200 {
		c.t.Fatal(code, b)
	}
}

func (c *cluster) service(name, ports, endpoints, slicePorts string) {
	c.t.Helper()
	c.create("/api/v1/namespaces/default/services", fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"ports":[%s]}}`, name, ports))
	if endpoints != "" {
		c.create("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", fmt.Sprintf(`{"metadata":{"name":"%s-1",`+
			`"labels":{"kubernetes.io/service-name":%q}},"addressType":"IPv4","ports":[%s],"endpoints":[%s]}`, name, name, slicePorts, endpoints))
	}
}

// A request to a Service's proxy reaches a ready endpoint that is one of its pods, by the port's name or number, and no
// other address.
func TestServiceProxy(t *testing.T) {
	answer := func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/away" {
			w.Header().Set("Location", "http://"+req.Host+"/login")
			w.WriteHeader(http.StatusFound)
			return
		}
		body, _ := io.ReadAll(req.Body) //nolint:errcheck // it is short
		fmt.Fprintf(w, "%s %s %s%s", req.Method, req.URL.RequestURI(), body, req.Header.Get("Authorization"))
	}
	port, secure := inPod(t, false, answer), inPod(t, true, answer)
	c := start(t)
	c.podWithAddress("a", "10.244.0.5")
	slicePorts := `{"name":"http","port":` + port + `},{"name":"https","port":` + secure + `},{"name":"dns","protocol":"UDP","port":53}`
	const ports = `{"name":"http","port":80},{"name":"https","port":443},{"name":"dns","port":53,"protocol":"UDP"}`
	ref := func(pod string) string {
		return `"targetRef":{"kind":"Pod","namespace":"default","name":"` + pod + `"}`
	}
	c.service("web", ports, `{"addresses":["10.244.0.5"],`+ref("a")+`},{"addresses":["10.244.0.6"],"conditions":{"ready":false},`+ref("b")+`}`, slicePorts)
	c.service("plain", `{"port":80}`, `{"addresses":["10.244.0.5"],`+ref("a")+`}`, `{"port":`+port+`}`)
	c.service("empty", `{"port":80}`, "", "")
	c.service("unready", `{"port":80}`, `{"addresses":["10.244.0.5"],"conditions":{"ready":false},`+ref("a")+`}`, `{"port":`+port+`}`)
	c.service("forged", `{"port":80}`, `{"addresses":["10.9.9.9"]}`, `{"port":`+port+`}`)
	c.service("borrowed", `{"port":80}`, `{"addresses":["10.9.9.9"],`+ref("a")+`}`, `{"port":`+port+`}`)
	c.create("/api/v1/namespaces/default/services", `{"metadata":{"name":"named"},"spec":{"type":"ExternalName","externalName":"example.org","ports":[{"port":80}]}}`)
	root := c.root()
	root.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for _, x := range []struct {
		method, path, body string
		code               int
		says               string
	}{
		{"GET", "web:http/proxy/a/b?c=d", "", 200, "GET /a/b?c=d "},
		{"GET", "web:80/proxy/", "", 200, "GET / "},
		{"POST", "http:web:http/proxy/x", "hello", 200, "POST /x hello"},
		{"PUT", "plain/proxy/x", "hello", 200, "PUT /x hello"},
		{"GET", "plain:80/proxy/x", "", 200, "GET /x "},
		{"GET", "https:web:https/proxy/", "", 200, "GET / "},
		{"GET", "https:web:443/proxy/", "", 200, "GET / "},
		{"GET", "web/proxy/", "", 503, "its ports have names: say which one, as web:PORT; it has http (80), https (443)"},
		{"GET", "web:81/proxy/", "", 503, `no service port 81 found for service \"web\"; it has http (80), https (443)`},
		{"GET", "web:dns/proxy/", "", 503, "no service port dns found"},
		{"GET", "empty/proxy/", "", 503, `no endpoints available for service \"empty\": no endpoint of its port 80 is ready`},
		{"GET", "unready:80/proxy/", "", 503, "no endpoint of its port 80 is ready"},
		{"GET", "forged:80/proxy/", "", 503, "its endpoints are not pods of its namespace"},
		{"GET", "borrowed:80/proxy/", "", 503, "no pod has the address"},
		{"GET", "named:80/proxy/", "", 503, "it is a name for example.org"},
		{"GET", "nobody:80/proxy/", "", 404, `services \"nobody\" not found`},
		{"GET", "ftp:web:80/proxy/", "", 400, "invalid service request"},
	} {
		code, body := c.do(root, x.method, ofServices+x.path, x.body)
		if code != x.code || !strings.Contains(body, x.says) || code == 503 && !strings.Contains(body, `"reason":"ServiceUnavailable"`) {
			t.Errorf("%s %s: %d %s, want %d %s", x.method, x.path, code, body, x.code, x.says)
		}
	}
	admin := c.user("admin", registry.GroupMasters)
	if code, body := c.do(admin, "GET", ofServices+"plain/proxy/x", "", "Authorization", "Bearer secret"); code != 200 || body != "GET /x " {
		t.Errorf("with a token: %d %s", code, body)
	}
	resp, err := root.Get("http://minik8s" + ofServices + "plain/proxy/away")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close() //nolint:errcheck // it is empty
	if at := resp.Header.Get("Location"); at != ofServices+"plain/proxy/login" {
		t.Errorf("redirected to %q", at)
	}
}

// A request to a node's proxy reaches its kubelet as the API server's own; at other ports the API server is nobody, and it
// connects to no address that only its own machine has.
func TestNodeProxy(t *testing.T) {
	c := start(t)
	c.create(nodesPath, `{"metadata":{"name":"n1"}}`)
	root := c.root()
	for _, status := range []string{"", `{"status":{"addresses":[{"type":"InternalIP","address":"127.0.0.1"}],"daemonEndpoints":{"kubeletEndpoint":{"Port":10250}}}}`} {
		if status != "" {
			if code, body := c.do(root, "PATCH", nodesPath+"/n1/status", status, "Content-Type", "application/merge-patch+json"); code != 200 {
				t.Fatal(code, body)
			}
		}
		for _, x := range []struct {
			method, path string
			code         int
			says         string
		}{
			{"GET", "n1/proxy/healthz", 200, "ok"},
			{"GET", "n1/proxy/pods", 200, `"kind":"PodList"`},
			{"GET", "n1/proxy/", 404, "page not found"},
			{"POST", "n1/proxy/healthz", 405, "Method Not Allowed"},
			{"GET", "none/proxy/healthz", 404, `nodes \"none\" not found`},
			{"GET", "n1:http/proxy/healthz", 400, "invalid node request"},
			{"GET", "n1:70000/proxy/healthz", 400, "invalid node request"},
		} {
			if code, body := c.do(root, x.method, nodesPath+"/"+x.path, ""); code != x.code || !strings.Contains(body, x.says) {
				t.Errorf("%s %s: %d %s, want %d %s", x.method, x.path, code, body, x.code, x.says)
			}
		}
		port, says := "n1:10250", "has no address yet"
		if status != "" {
			if code, body := c.do(root, "GET", nodesPath+"/"+port+"/proxy/healthz", ""); code != 200 || body != "ok" {
				t.Errorf("by the kubelet's port: %d %s", code, body)
			}
			port, says = "n1:2379", "has an address to which the API server does not connect: 127.0.0.1"
		}
		if code, body := c.do(root, "GET", nodesPath+"/"+port+"/proxy/healthz", ""); code != 400 || !strings.Contains(body, says) {
			t.Errorf("%s: %d %s", port, code, body)
		}
	}
	c.kubelets.missing = true
	if code, body := c.do(root, "GET", nodesPath+"/n1/proxy/healthz", ""); code != http.StatusServiceUnavailable || !strings.Contains(body, "trying to reach service") {
		t.Errorf("a kubelet that is away: %d %s", code, body)
	}
}

// A kubelet's streams work by the node's proxy too, and end with the client.
func TestNodeProxyStreams(t *testing.T) {
	pods := deaf{ended: make(chan struct{})}
	c := startWith(t, 0, pods)
	c.create(nodesPath, `{"metadata":{"name":"n1"}}`)
	d := websocket.Dialer{TLSClientConfig: c.user("admin", registry.GroupMasters).Transport.(*http.Transport).TLSClientConfig.Clone(), Subprotocols: []string{"v5.channel.k8s.io"}}
	ws, _, err := d.Dial("wss://"+c.address+nodesPath+"/n1/proxy/exec/default/p/c?command=x&stdin=1&stdout=1", nil)
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

// A kubelet that somebody has taken over leads nobody elsewhere, and sets no cookies of the API.
func TestNodeProxyOfALiar(t *testing.T) {
	c := start(t)
	c.create(nodesPath, `{"metadata":{"name":"n1"}}`)
	liar(t, c, func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Set-Cookie", "a=b")
		if to := req.URL.Query().Get("to"); to != "" {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusFound)
		}
	})
	root := c.root()
	root.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for to, code := range map[string]int{"": 200, "/pods": 302, "https://n1/pods": 302, "https://evil.example/": 503, "//evil.example/": 503, "http://n1.evil.example": 503,
		"http:evil.example/": 503, "https:evil.example": 503, `http:\evil.example`: 503, `\evil.example/`: 503, "javascript:alert(1)": 503} {
		resp, err := root.Get("http://minik8s" + nodesPath + "/n1/proxy/x?to=" + url.QueryEscape(to))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close() //nolint:errcheck // only the head is read
		at := resp.Header.Get("Location")
		if resp.StatusCode != code || resp.Header.Get("Set-Cookie") != "" || code == 302 && at != nodesPath+"/n1/proxy/pods" || code == 503 && at != "" {
			t.Errorf("%q: %s %v", to, resp.Status, resp.Header)
		}
	}
}

// Who may not use the proxies reaches nothing behind them: each is a right of its own.
func TestWhoMayProxy(t *testing.T) {
	reached := 0
	port := inPod(t, false, func(http.ResponseWriter, *http.Request) { reached++ })
	c := start(t)
	c.create(nodesPath, `{"metadata":{"name":"n1"}}`)
	c.podWithAddress("a", "10.244.0.5")
	c.service("web", `{"port":80}`, `{"addresses":["10.244.0.5"],"targetRef":{"kind":"Pod","namespace":"default","name":"a"}}`, `{"port":`+port+`}`)
	paths := map[string]string{ofServices + "web/proxy/": "services/proxy", nodesPath + "/n1/proxy/pods": "nodes/proxy", ofPods + "a:" + port + "/proxy/": "pods/proxy"}
	for who, x := range map[string]struct {
		client *http.Client
		code   int
	}{
		"nobody":             {c.user(""), 401},
		"somebody":           {c.user("alice", "people"), 403},
		"a service account":  {c.user("system:serviceaccount:default:default", "system:serviceaccounts", "system:serviceaccounts:default"), 403},
		"the node itself":    {c.user("system:node:n1", registry.GroupNodes), 403},
		"a controller":       {c.user("system:endpointslice-controller"), 403},
		"the proxy's own":    {c.user(registry.Proxy().Name), 403},
		"an administrator":   {c.user("admin", registry.GroupMasters), 200},
		"root on the socket": {c.root(), 200},
	} {
		for path, right := range paths {
			for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
				before := reached
				code, body := c.do(x.client, method, path, "")
				switch {
				case x.code != 200 && (code != x.code || reached != before || code == 403 && !strings.Contains(body, right)):
					t.Errorf("%s: %s %s: %d %s, reached %v", who, method, path, code, body, reached != before)
				case x.code == 200 && code != 200 && (right != "nodes/proxy" || method == "GET"):
					t.Errorf("%s: %s %s: %d %s", who, method, path, code, body)
				}
			}
		}
	}
}

// Discovery lists the proxies, so that access to them can be asked for.
func TestProxiesAreDiscovered(t *testing.T) {
	c := start(t)
	code, body := c.do(c.root(), "GET", "/api/v1", "")
	for _, want := range []string{`"name":"pods/proxy"`, `"name":"services/proxy"`, `"name":"nodes/proxy"`, `"kind":"NodeProxyOptions"`, `"kind":"ServiceProxyOptions"`} {
		if code != 200 || !strings.Contains(body, want) {
			t.Errorf("%d: without %s", code, want)
		}
	}
}
