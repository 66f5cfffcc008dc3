package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// webService puts a Service web with one port, as change makes it.
func (b *bed) webService(change func(*corev1.ServiceSpec)) {
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: corev1.ServiceSpec{ClusterIP: "10.7.0.9", Ports: []corev1.ServicePort{{Port: 80}}}}
	change(&svc.Spec)
	b.services.put("default", "web", svc, true)
	b.settle()
}

func speaks(protocol string) func(*corev1.ServiceSpec) {
	return func(s *corev1.ServiceSpec) { s.Ports[0].AppProtocol = &protocol }
}

// Where a Service's port says that its endpoints speak TLS they are spoken with so, by HTTP/1.1 and, for gRPC, by HTTP/2; certificates
// are not asked for. Upgrades go through.
func TestHTTPSBackends(t *testing.T) {
	b := newBed(t, nil, route("a.example", "/"))
	b.webService(speaks("HTTPS"))
	b.endpoints("10.9.3.1")
	l, err := net.Listen("tcp4", "10.9.3.1:8080")
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "echo" {
			w.Header().Set("Upgrade", "echo")
			w.Header().Set("Connection", "Upgrade")
			w.WriteHeader(http.StatusSwitchingProtocols)
			c, read, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			io.CopyN(c, read, 4)
			return
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s tls=%t host=%s %s %s", r.Proto, r.TLS != nil, r.Host, r.Header.Get("X-Forwarded-Proto"), body)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // who speaks no TLS is refused below
	s.Listener.Close()
	s.Listener, s.EnableHTTP2 = l, true
	s.StartTLS()
	defer s.Close()
	c := browser(t, at.String())
	for _, x := range []struct {
		method, body string
		headers      []string
		want         string
	}{
		{"GET", "", nil, "HTTP/1.1 tls=true host=a.example http "},
		{"POST", "hello", nil, "HTTP/1.1 tls=true host=a.example http hello"},
	} {
		if answer, text := do(t, c, x.method, "http://a.example/", strings.NewReader(x.body), x.headers...); answer.StatusCode != 200 || text != x.want {
			t.Errorf("%s: %d %s", x.method, answer.StatusCode, text)
		}
	}
	grpc := &http.Client{Transport: &http.Transport{Protocols: &http.Protocols{}, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, at.String()+":80")
	}}}
	grpc.Transport.(*http.Transport).Protocols.SetUnencryptedHTTP2(true)
	defer grpc.CloseIdleConnections()
	if answer, text := do(t, grpc, "POST", "http://a.example/", strings.NewReader("x"), "Content-Type", "application/grpc"); answer.StatusCode != 200 || text != "HTTP/2.0 tls=true host=a.example http x" {
		t.Errorf("gRPC: %d %s", answer.StatusCode, text)
	}
	if answer, text := do(t, grpc, "POST", "http://a.example/", strings.NewReader("x"), "Content-Type", "application/grpc-web+proto"); answer.StatusCode != 200 || text != "HTTP/1.1 tls=true host=a.example http x" {
		t.Errorf("gRPC-Web, which any backend may speak: %d %s", answer.StatusCode, text)
	}
	up, err := net.Dial("tcp", at.String()+":80")
	if err != nil {
		t.Fatal(err)
	}
	defer up.Close()
	up.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprintf(up, "GET / HTTP/1.1\r\nHost: a.example\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n")
	read := bufio.NewReader(up)
	answer, err := http.ReadResponse(read, nil)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(answer, err)
	}
	fmt.Fprint(up, "ping")
	if all, err := io.ReadAll(read); string(all) != "ping" {
		t.Errorf("an upgrade: %q, %v", all, err)
	}
	b.webService(speaks("http"))
	if answer, text := do(t, c, "GET", "http://a.example/", nil); answer.StatusCode != 400 {
		t.Errorf("without TLS: %d %s", answer.StatusCode, text)
	}
}

// A client stays with an endpoint where the Service has affinity, on the short way of plain requests as on the other one, by new connections
// too, and also when another endpoint comes; several clients do not all have the same one. Where its endpoint goes, another one answers.
func TestAffinity(t *testing.T) {
	b := newBed(t, nil, route("a.example", "/"))
	b.webService(func(s *corev1.ServiceSpec) { s.SessionAffinity = corev1.ServiceAffinityClientIP })
	all := []string{"10.9.4.1", "10.9.4.2", "10.9.4.3", "10.9.4.4"}
	for _, a := range all {
		serve(t, a, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, a) })
	}
	b.endpoints(all[:3]...)
	clients := map[string]*http.Client{}
	for i := range 12 {
		from := net.IPv4(10, 9, 5, byte(i+1))
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: from}}
		tr := &http.Transport{DisableKeepAlives: i%2 == 0, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return d.DialContext(ctx, network, at.String()+":80")
		}}
		t.Cleanup(tr.CloseIdleConnections)
		clients[from.String()] = &http.Client{Transport: tr}
	}
	had := map[string]string{}
	ask := func(when string) (used map[string]bool, moved int) {
		t.Helper()
		used = map[string]bool{}
		for from, c := range clients {
			for n := range 4 {
				var headers []string
				if n%2 == 1 {
					headers = []string{"Expect", "100-continue"} // no plain request
				}
				answer, text := do(t, c, "GET", "http://a.example/", nil, headers...)
				if answer.StatusCode != 200 {
					t.Fatalf("%s: %s: %d %s", when, from, answer.StatusCode, text)
				}
				if had[from] != "" && had[from] != text {
					moved++
				}
				had[from], used[text] = text, true
			}
		}
		return used, moved
	}
	if used, moved := ask("at first"); moved != 0 || len(used) < 2 {
		t.Errorf("%v, %d requests went elsewhere", used, moved)
	}
	b.endpoints(all...)
	if used, moved := ask("one more"); moved != 0 || used[all[3]] {
		t.Errorf("with another endpoint: %v, %d requests went elsewhere", used, moved)
	}
	gone := had["10.9.5.1"]
	lost := 0
	for _, a := range had {
		if a == gone {
			lost++
		}
	}
	var left []string
	for _, a := range all {
		if a != gone {
			left = append(left, a)
		}
	}
	b.endpoints(left...)
	if used, moved := ask("one less"); used[gone] || moved != lost {
		t.Errorf("without %s: %v, %d of %d clients moved", gone, used, moved, lost)
	}
	b.webService(func(*corev1.ServiceSpec) {})
	if used, _ := ask("no affinity"); len(used) != 3 {
		t.Errorf("without affinity: %v", used)
	}
}
