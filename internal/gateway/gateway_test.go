package gateway

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/gateway/routes"
)

// tell answers with what the backend has seen.
func tell(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Add("Connection", "X-Secret-Hop")
	w.Header().Set("X-Secret-Hop", "1")
	w.Header().Set("X-Stays", "1")
	fmt.Fprintf(w, "%s %s %s %q\n", r.Method, r.RequestURI, r.Host, body)
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for n := range r.Header {
			if !yield(n) {
				return
			}
		}
	}) {
		fmt.Fprintf(w, "%s: %s\n", name, strings.Join(r.Header[name], ", "))
	}
}

func TestWhatBackendsSee(t *testing.T) {
	serve(t, "10.9.0.1", tell)
	b := newBed(t, nil, route("hello.world", "/world"), route("hello.world", "/new/world"), route("keep.world", "/p", func(r *routes.Route) { r.Strip = false }))
	b.endpoints("10.9.0.1")
	c := browser(t, "10.8.0.1")
	for _, r := range []struct{ method, url, body, want string }{
		{"GET", "http://hello.world/world", "", `GET / hello.world ""`},
		{"GET", "http://hello.world/world/a/b?x=1;y&z=%zz", "", `GET /a/b?x=1;y&z=%zz hello.world ""`},
		{"GET", "http://hello.world/new/world/", "", `GET / hello.world ""`},
		{"GET", "http://hello.world/new/world/a%2Fb/%C3%A9", "", `GET /a%2Fb/%C3%A9 hello.world ""`},
		{"GET", "http://hello.world/world/x/../../world/y", "", `GET /y hello.world ""`},
		{"POST", "http://hello.world/world/form", "a=b", `POST /form hello.world "a=b"`},
		{"PUT", "http://keep.world/p/q", strings.Repeat("x", 20000), `PUT /p/q keep.world "` + strings.Repeat("x", 20000) + `"`},
		{"DELETE", "http://HELLO.world:80/world?", "", `DELETE /? HELLO.world:80 ""`},
	} {
		_, text := do(t, c, r.method, r.url, strings.NewReader(r.body))
		if first, _, _ := strings.Cut(text, "\n"); first != r.want {
			t.Errorf("%s %s: %s, want %s", r.method, r.url, first, r.want)
		}
	}
	answer, text := do(t, c, "GET", "http://hello.world/world", nil, "X-Forwarded-For", "1.1.1.1", "X-Forwarded-Host", "bank", "X_Forwarded_For", "1.1.1.1", "x_real-ip", "1.1.1.1", "X-Forwarded-Port", "1", "X-Real-IP", "1.1.1.1",
		"Forwarded", "for=1.1.1.1", "X-Forwarded-Proto", "https", "Keep-Alive", "3", "Proxy-Connection", "x", "X-Custom", "a", "X-Custom", "b", "User-Agent", "me", "TE", "trailers, deflate")
	want := "GET / hello.world \"\"\nCdn-Loop: minik8s\nUser-Agent: me\nX-Custom: a, b\nX-Forwarded-For: 10.8.0.1\nX-Forwarded-Host: hello.world\nX-Forwarded-Prefix: /world\nX-Forwarded-Proto: http\nX-Real-Ip: 10.8.0.1\n"
	if text = strings.Replace(text, "Te: trailers\n", "", 1); text != want {
		t.Errorf("the backend has seen\n%s\nwant\n%s", text, want)
	}
	if h := answer.Header; h.Get("X-Secret-Hop") != "" || h.Get("X-Stays") != "1" {
		t.Errorf("the client has seen %v", h)
	}
}

func TestPages(t *testing.T) {
	var many []routes.Route
	for i := range 30 {
		many = append(many, route("many.world", fmt.Sprintf("/p%02d", i)))
	}
	b := newBed(t, nil, append(many, route("hello.world", "/world"), route("none.world", "/", func(r *routes.Route) { r.Backend.Service = "none" }),
		route("own.world", "/", func(r *routes.Route) { r.Backend = routes.Backend{Address: netip.MustParseAddrPort("127.0.0.1:22")} }),
		route("loop.world", "/", func(r *routes.Route) { r.Backend = routes.Backend{Address: netip.MustParseAddrPort("10.8.0.1:80")} }))...)
	b.endpoints()
	c := browser(t, "10.8.0.1")
	check := func(method, url, accept string, status int, want ...string) {
		t.Helper()
		answer, text := do(t, c, method, url, nil, "Accept", accept)
		if answer.StatusCode != status {
			t.Errorf("%s: %s", url, answer.Status)
		}
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s says\n%s\nwithout %s", url, text, w)
			}
		}
		if strings.Contains(text, "10.9.0.") || strings.Contains(text, "127.0.0.1") || strings.Contains(text, "<script>") {
			t.Errorf("%s says\n%s", url, text)
		}
		if method == "HEAD" && (text != "" || answer.ContentLength <= 0) {
			t.Errorf("HEAD: %q, %d bytes", text, answer.ContentLength)
		}
	}
	check("GET", "http://hello.world/other", "*/*", 404, "404 Not Found\n", "hello.world has no such path: /other\n", "DNS default/hello has these:\n", "  /world\n")
	check("HEAD", "http://hello.world/other", "*/*", 404)
	check("GET", "http://many.world/", "", 404, "  /p19\n", "and 10 more\n")
	check("GET", "http://hello.world/%3Cscript%3E", "text/html,*/*;q=0.8", 404, "<li>/world</li>", "/&lt;script&gt;")
	check("GET", "http://unknown.world/", "", 404, "No object has a route for the host unknown.world here.")
	check("GET", "http://hello.world/world", "", 503, "503 Service Unavailable\n", "Service default/web has no endpoint that is ready.", "DNS default/hello")
	check("GET", "http://none.world/", "", 503, "Service default/none does not exist.")
	check("GET", "http://own.world/", "", 502, "none that was asked has answered")
	check("GET", "http://loop.world/", "", 502)
	check("POST", "http://loop.world/", "", 502)
	check("GET", "http://hello.world/%2e%2e/etc", "", 400)
	b.endpoints("10.9.0.77") // where nothing listens
	check("GET", "http://hello.world/world", "", 502, "Service default/web has endpoints, but none that was asked has answered.")
}

// TestEndpointsThatFail: refusing endpoints cost no request, whatever the method.
func TestEndpointsThatFail(t *testing.T) {
	var seen atomic.Int32
	serve(t, "10.9.0.1", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen.Add(1)
		_, _ = w.Write(body)
	})
	var broken atomic.Int32
	serve(t, "10.9.0.3", func(w http.ResponseWriter, r *http.Request) {
		broken.Add(1)
		panic(http.ErrAbortHandler) // before any byte
	})
	b := newBed(t, nil, route("a", "/"))
	b.endpoints("10.9.0.1", "10.9.0.2")
	c := browser(t, "10.8.0.1")
	for i := range 20 {
		text := fmt.Sprint("text", i)
		if answer, got := do(t, c, "POST", "http://a/", strings.NewReader(text)); answer.StatusCode != 200 || got != text {
			t.Fatal(answer.Status, got)
		}
		if answer, got := do(t, c, "POST", "http://a/", io.MultiReader(strings.NewReader(text))); answer.StatusCode != 200 || got != text {
			t.Fatal("in chunks: ", answer.Status, got)
		}
	}
	b.endpoints("10.9.0.1", "10.9.0.3")
	for range 20 {
		if answer, _ := do(t, c, "GET", "http://a/", nil); answer.StatusCode != 200 {
			t.Fatal(answer.Status)
		}
	}
	if n := broken.Load(); n == 0 || n > 5 {
		t.Errorf("the broken endpoint was asked %d times", n)
	}
	b.endpoints("10.9.0.3")
	if answer, _ := do(t, c, "POST", "http://a/", strings.NewReader("x")); answer.StatusCode != 502 {
		t.Error("a POST that an endpoint may have acted upon: ", answer.Status)
	}
	before := seen.Load()
	b.endpoints("10.9.0.1")
	if _, got := do(t, c, "GET", "http://a/", nil); got != "" || seen.Load() != before+1 {
		t.Error("not the endpoint that is left")
	}
}

// TestRolling replaces endpoints under load: new ones first, old ones end when nothing leads to them any more, also no
// request that was on its way.
func TestRolling(t *testing.T) {
	b := newBed(t, nil, route("a", "/"))
	answer := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	}
	stops := []func(){serve(t, "10.9.1.0", answer), serve(t, "10.9.1.1", answer)}
	b.endpoints("10.9.1.0", "10.9.1.1")
	done := make(chan struct{})
	var clients sync.WaitGroup
	var requests [8]atomic.Int64
	for i := range requests {
		c := browser(t, "10.8.0.1")
		clients.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				method, body := "GET", ""
				if (n+i)%2 == 0 {
					method, body = "POST", strings.Repeat("x", 100*(n%300))
				}
				r, _ := http.NewRequest(method, "http://a/", strings.NewReader(body))
				got, err := c.Do(r)
				if err != nil {
					t.Errorf("%s: %v", method, err)
					return
				}
				text, err := io.ReadAll(got.Body)
				got.Body.Close()
				if err != nil || got.StatusCode != 200 || string(text) != body {
					t.Errorf("%s: %s %v, %d of %d bytes", method, got.Status, err, len(text), len(body))
					return
				}
				requests[i].Add(1)
			}
		})
	}
	for i := range 12 {
		next := fmt.Sprintf("10.9.1.%d", i+2)
		stops = append(stops, serve(t, next, answer))
		b.endpoints(fmt.Sprintf("10.9.1.%d", i+1), next)
		for i := range requests { // the first one may have begun before
			before := requests[i].Load()
			b.eventually("no requests", func() bool { return requests[i].Load() > before+5 || t.Failed() })
		}
		stops[i]()
	}
	close(done)
	clients.Wait()
}

func TestBigBodies(t *testing.T) {
	serve(t, "10.9.0.1", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("length") != "" {
			w.Header().Set("Content-Length", r.URL.Query().Get("length"))
		}
		_ = http.NewResponseController(w).EnableFullDuplex()
		_, _ = io.Copy(w, r.Body)
	})
	b := newBed(t, nil, route("a", "/"))
	b.endpoints("10.9.0.1")
	c := browser(t, "10.8.0.1")
	big := make([]byte, 5<<20)
	for i := range big {
		big[i] = byte(rand.IntN(256))
	}
	for _, n := range []int{1, 4095, 4096, 9000, 70000, len(big)} {
		for _, chunked := range []bool{false, true} {
			body, query := io.Reader(strings.NewReader(string(big[:n]))), fmt.Sprintf("?length=%d", n)
			if chunked {
				body, query = io.MultiReader(body), ""
			}
			_, text := do(t, c, "POST", "http://a/"+query, body)
			if sha256.Sum256([]byte(text)) != sha256.Sum256(big[:n]) {
				t.Errorf("%d bytes, chunked %v: not the same, %d bytes", n, chunked, len(text))
			}
		}
	}
}

func TestBackendsByAddress(t *testing.T) {
	serve(t, "10.9.0.1", tell)
	to := func(address string) func(*routes.Route) {
		return func(r *routes.Route) { r.Backend = routes.Backend{Address: netip.MustParseAddrPort(address)} }
	}
	b := newBed(t, nil, route("virtual", "/", to("10.7.0.9:80")), route("pod", "/", to("10.9.0.1:8080")), route("wrong", "/", to("10.7.0.9:81")))
	c := browser(t, "10.8.0.1")
	check := func(host string, status int) {
		t.Helper()
		if answer, text := do(t, c, "GET", "http://"+host+"/", nil); answer.StatusCode != status {
			t.Errorf("%s: %s %s", host, answer.Status, text)
		}
	}
	check("pod", 200)
	b.endpoints("10.9.0.1") // nothing in this network translates the Service's address
	check("virtual", 200)
	check("wrong", 503)
	b.services.put("default", "web", &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: corev1.ServiceSpec{ClusterIP: "10.7.0.10", Ports: []corev1.ServicePort{{Port: 80}}}}, true)
	b.settle()
	b.routes(route("virtual", "/", to("10.7.0.10:80")))
	check("virtual", 200)
}
