package gateway

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/gateway/routes"
)

type routesRoute = routes.Route

func atAddress(a string) func(*routes.Route) {
	return func(r *routes.Route) { r.Address = netip.MustParseAddr(a) }
}

func TestDoors(t *testing.T) {
	serve(t, "10.9.0.1", tell)
	opened := make(chan struct{}, 100)
	b := newBed(t, func(c *Config) { c.Opened = func() { opened <- struct{}{} } })
	b.endpoints("10.9.0.1")
	idle := runtime.NumGoroutine()
	if n := len(b.g.Doors()); n > 0 {
		t.Errorf("%d listeners without a route", n)
	}
	b.routes(route("a", "/"), route("far", "/", atAddress("10.6.0.1")))
	c := dialGateway(t, "10.8.0.1:80")
	ask := func(want int) {
		t.Helper()
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		if answer.StatusCode != want {
			t.Errorf("%s, want %d", answer.Status, want)
		}
	}
	ask(200)
	// The address comes to the node after the listener.
	if out, err := exec.Command("ip", "addr", "add", "10.6.0.1/32", "dev", "lo").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("ip", "addr", "del", "10.6.0.1/32", "dev", "lo").Run() })
	if answer, _ := do(t, browser(t, "10.6.0.1"), "GET", "http://far/", nil); answer.StatusCode != 200 {
		t.Error(answer.Status)
	}
	b.routes(route("a", "/"), route("b", "/", atAddress("10.8.0.2")))
	ask(200) // on the connection that there was
	if _, err := net.Dial("tcp", "10.6.0.1:80"); err == nil {
		t.Error("an address that no route has is still open")
	}
	b.routes(route("b", "/", atAddress("10.8.0.2")))
	ask(404)
	c.Close()

	// A port that another has is tried again.
	other, err := net.Listen("tcp", "10.8.0.3:80")
	if err != nil {
		t.Fatal(err)
	}
	b.routes(route("c", "/", atAddress("10.8.0.3")))
	if err := b.g.Doors()[netip.MustParseAddrPort("10.8.0.3:80")]; err == nil {
		t.Error("two listen at one port")
	}
	other.Close()
	b.eventually("the port is free, and not taken", func() bool { return b.g.Doors()[netip.MustParseAddrPort("10.8.0.3:80")] == nil })
	if answer, _ := do(t, browser(t, "10.8.0.3"), "GET", "http://c/", nil); answer.StatusCode != 200 {
		t.Error(answer.Status)
	}
	b.routes()
	http.DefaultClient.CloseIdleConnections()
	b.eventually("goroutines without a route", func() bool { return runtime.NumGoroutine() <= idle+20 })
	if n := len(b.g.Doors()); n > 0 {
		t.Errorf("%d listeners without a route", n)
	}
	if len(opened) < 5 {
		t.Errorf("told %d times of doors", len(opened))
	}
}

func TestOwnAddresses(t *testing.T) {
	serve(t, "10.9.0.1", tell)
	b := newBed(t, func(c *Config) { c.Addresses = []netip.Addr{netip.MustParseAddr("10.8.1.1")} }, route("dns", "/"))
	b.endpoints("10.9.0.1")
	if n := len(b.g.Doors()); n != 2 {
		t.Errorf("%d doors though no route is for the gateway's own addresses", n)
	}
	ingress := route("ing", "/", func(r *routes.Route) { r.Address = netip.Addr{} })
	b.routes(route("dns", "/"), ingress)
	if answer, _ := do(t, browser(t, "10.8.1.1"), "GET", "http://ing/", nil); answer.StatusCode != 200 {
		t.Error(answer.Status)
	}
	if answer, _ := do(t, browser(t, "10.8.1.1"), "GET", "http://dns/", nil); answer.StatusCode != 404 {
		t.Error("a DNS object at an address that is not its own: ", answer.Status)
	}
	b.g.SetAddresses([]netip.Addr{netip.MustParseAddr("10.8.1.2")})
	b.settle()
	if answer, _ := do(t, browser(t, "10.8.1.2"), "GET", "http://ing/", nil); answer.StatusCode != 200 {
		t.Error(answer.Status)
	}
	if _, err := net.Dial("tcp", "10.8.1.1:80"); err == nil {
		t.Error("an address that is the gateway's no more is still open")
	}
}

// secretOf makes a Secret with a certificate for names.
func secretOf(t *testing.T, serial int64, names ...string) *corev1.Secret {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), DNSNames: names, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{Data: map[string][]byte{"tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		"tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})}}
}

// secretStore has Secrets that are followed.
type secretStore struct {
	mu       sync.Mutex
	secrets  map[string]*corev1.Secret // nil: it cannot be read
	told     map[string]func()
	followed int
}

func (s *secretStore) follow(ctx context.Context, namespace, name string, told func(*corev1.Secret, error)) {
	name = namespace + "/" + name
	tell := func() {
		if secret, ok := s.secrets[name]; ok && secret == nil {
			told(nil, errors.New("no answer"))
		} else {
			told(secret, nil)
		}
	}
	s.mu.Lock()
	s.followed++
	s.told[name] = tell
	tell()
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	delete(s.told, name)
	s.mu.Unlock()
}

// set changes a Secret; remove deletes it.
func (s *secretStore) set(name string, secret *corev1.Secret, remove bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.secrets[name] = secret; remove {
		delete(s.secrets, name)
	}
	if tell := s.told[name]; tell != nil {
		tell()
	}
}

// Certificates are followed from when a client first asks for them, and until no route names them: a renewed one is shown at the
// next handshake.
func TestTLS(t *testing.T) {
	serve(t, "10.9.0.1", tell)
	s := &secretStore{secrets: map[string]*corev1.Secret{"default/exact": secretOf(t, 1, "a.world"), "default/wild": secretOf(t, 2, "*.world"), "default/mute": nil}, told: map[string]func(){}}
	b := newBed(t, func(c *Config) { c.Follow = s.follow })
	cert := func(host, secret string) routes.Certificate {
		return routes.Certificate{Host: host, Secret: routes.SecretName{Namespace: "default", Name: secret}}
	}
	b.front.set.Certificates = []routes.Certificate{cert("a.world", "exact"), cert("*.world", "wild"), cert("gone.example", "gone"), cert("mute.example", "mute")}
	b.routes(route("", "/"))
	b.endpoints("10.9.0.1")
	if s.followed > 0 {
		t.Error("Secrets are read before anybody asks")
	}
	for _, alpn := range []string{"h2", "http/1.1"} {
		serial := func(name string) int64 {
			t.Helper()
			c, err := tls.Dial("tcp", "10.8.0.1:443", &tls.Config{ServerName: name, InsecureSkipVerify: true, NextProtos: []string{alpn}})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			s := c.ConnectionState()
			if s.NegotiatedProtocol != alpn {
				t.Errorf("%s is spoken", s.NegotiatedProtocol)
			}
			if n := s.PeerCertificates[0].SerialNumber; n.IsInt64() {
				return n.Int64()
			}
			return 0 // our own
		}
		for name, want := range map[string]int64{"a.world": 1, "b.world": 2, "A.world": 1, "gone.example": 0, "mute.example": 0, "other.example": 0, "": 0} {
			if got := serial(name); got != want {
				t.Errorf("%s: certificate %d, want %d", name, got, want)
			}
		}
		if s.followed != 4 {
			t.Errorf("Secrets were asked for %d times", s.followed)
		}
		for _, x := range []struct {
			what   string
			secret *corev1.Secret
			remove bool
			want   int64
		}{
			{"renewed", secretOf(t, 7, "a.world"), false, 7},
			{"while the API does not answer", nil, false, 7},
			{"one that cannot be used", &corev1.Secret{}, false, 7},
			{"deleted", nil, true, 0},
			{"there again", secretOf(t, 1, "a.world"), false, 1},
		} {
			if s.set("default/exact", x.secret, x.remove); serial("a.world") != x.want {
				t.Errorf("%s: certificate %d, want %d", x.what, serial("a.world"), x.want)
			}
		}

		c := browser(t, "10.8.0.1")
		tr := c.Transport.(*http.Transport)
		tr.TLSClientConfig, tr.ForceAttemptHTTP2 = &tls.Config{InsecureSkipVerify: true}, alpn == "h2"
		answer, text := do(t, c, "GET", "https://a.world/x", nil)
		if answer.StatusCode != 200 || (answer.ProtoMajor == 2) != (alpn == "h2") {
			t.Error(answer.Status, answer.Proto)
		}
		if want := "X-Forwarded-Proto: https\n"; !strings.Contains(text, want) {
			t.Errorf("the backend has seen\n%s", text)
		}
	}
	b.front.set.Certificates = b.front.set.Certificates[:1]
	b.routes(route("", "/"))
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		left := len(s.told)
		s.mu.Unlock()
		if left == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(left, " Secrets are followed, and one is named")
		}
	}
}
