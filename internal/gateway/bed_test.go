package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"minik8s/internal/api"
	"minik8s/internal/gateway/routes"
	"minik8s/internal/informer"
	"minik8s/internal/machine"
)

// TestMain gives the tests a machine's network of their own, in which 10.8.0.0/16 and 10.9.0.0/16 are the machine's.
func TestMain(m *testing.M) {
	if os.Getenv(gatewayRole) != "" { // in the network of the test that started it
		os.Exit(runGateway())
	}
	machine.Run(func() int {
		for _, n := range []string{"10.8.0.0/16", "10.9.0.0/16"} {
			if out, err := exec.Command("ip", "route", "replace", "local", n, "dev", "lo").CombinedOutput(); err != nil {
				fmt.Fprintf(os.Stderr, "ip route: %v: %s\n", err, out)
				return 1
			}
		}
		return m.Run()
	})
}

// kind is a kind in memory.
type kind[T api.Object] struct {
	mu       sync.Mutex
	objects  map[string]T
	handlers []informer.Handler[T]
}

func (k *kind[T]) OnChange(h informer.Handler[T]) { k.handlers = append(k.handlers, h) }

func (k *kind[T]) Run(ctx context.Context, ready func()) error {
	ready()
	<-ctx.Done()
	return nil
}

func (k *kind[T]) Get(namespace, name string) (T, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	obj, ok := k.objects[namespace+"/"+name]
	return obj, ok
}

func (k *kind[T]) List() (out []T) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, obj := range k.objects {
		out = append(out, obj)
	}
	return out
}

func (k *kind[T]) put(namespace, name string, now T, exists bool) {
	k.mu.Lock()
	if k.objects == nil {
		k.objects = map[string]T{}
	}
	old := k.objects[namespace+"/"+name]
	if k.objects[namespace+"/"+name] = now; !exists {
		delete(k.objects, namespace+"/"+name)
	}
	k.mu.Unlock()
	for _, h := range k.handlers {
		h(old, now)
	}
}

// front is a front end that is told its routes.
type front struct {
	mu      sync.Mutex
	set     routes.Set
	changed func()
}

func (f *front) OnChange(changed func()) { f.changed = changed }
func (f *front) Run(ctx context.Context, ready func()) error {
	ready()
	<-ctx.Done()
	return nil
}
func (f *front) Routes() []routes.Set {
	f.mu.Lock()
	defer f.mu.Unlock()
	return []routes.Set{f.set}
}

// bed is a gateway with what it follows.
type bed struct {
	*testing.T
	g        *Gateway
	services kind[*corev1.Service]
	slices   kind[*discoveryv1.EndpointSlice]
	front    front
}

var at = netip.MustParseAddr("10.8.0.1")

// testLog keeps messages for a test that fails.
type testLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *testLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func newBed(t *testing.T, change func(*Config), list ...routes.Route) *bed {
	t.Helper()
	b := &bed{T: t}
	b.front.set.Routes = list
	b.start(change, &b.front)
	return b
}

// start runs the gateway until the test ends.
func (b *bed) start(change func(*Config), fronts ...FrontEnd) {
	t := b.T
	t.Helper()
	log := &testLog{}
	cfg := Config{Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	if change != nil {
		change(&cfg)
	}
	b.g = New(cfg, &b.services, &b.slices, fronts...)
	ctx, stop := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- b.g.Run(ctx, func() { close(ready) }) }()
	<-ready
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(log.b.String())
		}
	})
}

// routes replaces the routes.
func (b *bed) routes(list ...routes.Route) {
	b.front.mu.Lock()
	b.front.set.Routes = list
	b.front.mu.Unlock()
	b.front.changed()
	b.settle()
}

// settle waits until the gateway has what it was told.
func (b *bed) settle() {
	b.Helper()
	b.eventually("the gateway has not caught up", func() bool {
		b.g.seen.Lock()
		defer b.g.seen.Unlock()
		return !b.g.seen.routes && !b.g.seen.working && len(b.g.seen.dirty) == 0 && len(b.g.wake) == 0
	})
}

func (b *bed) eventually(what string, ok func() bool) {
	b.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			b.Fatal(what)
		}
	}
}

// route leads to the Service web.
func route(host, path string, change ...func(*routes.Route)) routes.Route {
	r := routes.Route{Address: at, Host: host, Path: path, Strip: true, Backend: routes.Backend{Namespace: "default", Service: "web", Port: "80"},
		Owner: routes.Owner{Kind: "DNS", Namespace: "default", Name: "hello"}}
	for _, f := range change {
		f(&r)
	}
	return r
}

// endpoints says which addresses the Service web has; words after an address are its conditions.
func (b *bed) endpoints(list ...string) {
	b.Helper()
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: corev1.ServiceSpec{ClusterIP: "10.7.0.9", Ports: []corev1.ServicePort{{Port: 80}}}}
	if _, ok := b.services.Get("default", "web"); !ok {
		b.services.put("default", "web", svc, true)
	}
	port := int32(8080)
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: &port}}}
	for _, a := range list {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}})
	}
	b.slices.put("default", "web-1", s, true)
	b.settle()
}

// serve runs a backend at an address, port 8080, until the test ends or stop is called, which lets requests end.
func serve(t *testing.T, address string, h http.HandlerFunc) (stop func()) {
	t.Helper()
	l, err := net.Listen("tcp4", net.JoinHostPort(address, strconv.Itoa(8080)))
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h, Protocols: &http.Protocols{}}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	var ended sync.WaitGroup
	ended.Go(func() { _ = s.Serve(l) })
	var once sync.Once
	end := func() {
		once.Do(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
			defer cancel()
			if s.Shutdown(ctx) != nil {
				s.Close()
			}
			ended.Wait()
		})
	}
	t.Cleanup(end)
	return end
}

// browser is a client that reaches every host by the gateway's address.
func browser(t *testing.T, address string) *http.Client {
	tr := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 100, DialContext: func(ctx context.Context, network, to string) (net.Conn, error) {
		_, port, _ := net.SplitHostPort(to)
		return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(address, port))
	}}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 20 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// do sends a request and reads all of the answer.
func do(t *testing.T, c *http.Client, method, url string, body io.Reader, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(text)
}
