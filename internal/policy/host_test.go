package policy

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/api"
	"minik8s/internal/api/minik8s"
	"minik8s/internal/informer"
	"minik8s/internal/machine"
	"minik8s/internal/network"
	"minik8s/internal/nft"
)

// source is a Source that a test fills.
type source[T api.Object] struct {
	mu       sync.Mutex
	objects  map[types.NamespacedName]T
	handlers []informer.Handler[T]
	listed   []func()
	running  bool
}

func newSource[T api.Object]() *source[T] { return &source[T]{objects: map[types.NamespacedName]T{}} }

// OnChange and OnList are called before Run, by who may run while the test fills the source.
func (s *source[T]) OnChange(h informer.Handler[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handlers = append(s.handlers, h)
}

func (s *source[T]) OnList(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed = append(s.listed, f)
}

func (s *source[T]) Get(namespace, name string) (T, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[types.NamespacedName{Namespace: namespace, Name: name}]
	return o, ok
}

func (s *source[T]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.objects)
}

func (s *source[T]) follows() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running
}

func (s *source[T]) Run(ctx context.Context, ready func()) error {
	s.mu.Lock()
	s.running = true
	all := make([]T, 0, len(s.objects))
	for _, o := range s.objects {
		all = append(all, o)
	}
	handlers, listed := s.handlers, s.listed
	s.mu.Unlock()
	var none T
	for _, o := range all {
		for _, h := range handlers {
			h(none, o)
		}
	}
	for _, f := range listed {
		f()
	}
	ready()
	<-ctx.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running, s.handlers, s.listed = false, nil, nil
	return nil
}

// set puts an object in place of one with its name, or removes that if now is not there.
func (s *source[T]) set(name types.NamespacedName, now T, there bool) {
	s.mu.Lock()
	old, was := s.objects[name]
	if s.objects[name] = now; !there {
		delete(s.objects, name)
	}
	running, handlers := s.running, s.handlers
	s.mu.Unlock()
	for _, h := range handlers {
		if running && (was || there) {
			h(old, now)
		}
	}
}

// api is what the API would have.
type apiServer struct {
	policies   *source[*networkingv1.NetworkPolicy]
	pods       *source[*minik8s.PodAddress]
	namespaces *source[*corev1.Namespace]
}

func newAPI() apiServer {
	a := apiServer{newSource[*networkingv1.NetworkPolicy](), newSource[*minik8s.PodAddress](), newSource[*corev1.Namespace]()}
	for _, ns := range []string{"x", "y", "z"} {
		a.namespace(ns, map[string]string{"ns": ns})
	}
	return a
}

func (a apiServer) namespace(name string, labels map[string]string) {
	a.namespaces.set(types.NamespacedName{Name: name}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, true)
}

func (a apiServer) policy(np *networkingv1.NetworkPolicy) {
	a.policies.set(types.NamespacedName{Namespace: np.Namespace, Name: np.Name}, np, true)
}

func (a apiServer) noPolicy(namespace, name string) {
	a.policies.set(types.NamespacedName{Namespace: namespace, Name: name}, nil, false)
}

// pod makes a pod with the label pod=NAME on a node.
func (a apiServer) pod(namespace, name, node string, addrs ...string) *minik8s.PodAddress {
	p := &minik8s.PodAddress{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name), Labels: map[string]string{"pod": name}},
		Spec: minik8s.PodAddressSpec{NodeName: node, Addresses: addrs, Ports: []minik8s.NamedPort{{Name: "http", Port: 8080, Protocol: corev1.ProtocolTCP}}}}
	a.pods.set(types.NamespacedName{Namespace: namespace, Name: name}, p, true)
	return p
}

func (a apiServer) noPod(namespace, name string) {
	a.pods.set(types.NamespacedName{Namespace: namespace, Name: name}, nil, false)
}

// host is this process's namespace as a node with pods.
type host struct {
	t        testing.TB
	net      *network.Network
	api      apiServer
	kernel   *nft.Kernel
	enforcer *Enforcer
	warnings []string
	stop     func()
	pods     int
}

func newHost(t testing.TB) *host {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("namespaces need root")
	}
	n, err := network.New(network.Config{PodCIDR: netip.MustParsePrefix("10.244.0.0/24"), NodeIP: netip.MustParseAddr(machine.Address), Owner: "policy", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(n.Teardown(context.WithoutCancel(t.Context())), n.Close()); err != nil {
			t.Error(err)
		}
	})
	if err := n.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := &host{t: t, net: n, api: newAPI(), kernel: nft.NewKernel()}
	if _, err := h.kernel.Sync(h.owners()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.down()
		if err := nft.NewKernel().Delete(h.table()); err != nil {
			t.Error(err)
		}
	})
	return h
}

func (h *host) table() string { return "minik8s-services-" + h.net.Owner() }

// owners is what the table's owner keeps in it.
func (h *host) owners() nft.Table {
	return nft.Table{Name: h.table(), Guests: Prefix, Sets: []nft.Set{{Name: "services", Key: []nft.Type{nft.Address}}},
		Chains: []nft.Chain{{Name: "output", NAT: true, Hook: nft.Output, Priority: nft.PriorityDstNAT}}}
}

type testLog struct{ t testing.TB }

func (l testLog) Write(b []byte) (int, error) { l.t.Logf("%s", b); return len(b), nil }

// up starts the enforcer as a daemon does.
func (h *host) up() {
	h.t.Helper()
	h.kernel = nft.NewKernel()
	h.enforcer = New(Config{Table: h.table(), Links: h.net.LinkPrefix(), NodeName: here, Ruleset: h.kernel,
		Follow: func() Peers { return Peers{h.api.pods, h.api.namespaces} },
		Warn: func(np *networkingv1.NetworkPolicy, message string) {
			h.warnings = append(h.warnings, np.Name+": "+message)
		},
		Log: slog.New(slog.NewTextHandler(testLog{h.t}, nil))}, h.api.policies)
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.t.Context()))
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- h.enforcer.Run(ctx, func() { close(ready) }) }()
	h.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			h.t.Error(err)
		}
	}
	select {
	case <-ready:
	case <-time.After(2 * time.Minute):
		h.t.Fatal("the enforcer does not become ready")
	}
}

func (h *host) down() {
	if h.stop != nil {
		h.stop()
		h.stop = nil
	}
}

// caughtUp waits until all that was told is in the kernel.
func (h *host) caughtUp() {
	h.t.Helper()
	h.until("the enforcer has caught up", func() bool {
		e := h.enforcer
		e.mu.Lock()
		defer e.mu.Unlock()
		e.seen.Lock()
		defer e.seen.Unlock()
		return len(e.seen.policies)+len(e.seen.pods)+len(e.seen.namespaces) == 0 && e.keeper.Synced() && e.idle == (h.api.policies.Len() == 0) &&
			(e.idle || e.seen.lists[listPods] && e.seen.lists[listNamespaces])
	})
}

func (h *host) until(what string, ok func() bool) {
	h.t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			out, _ := exec.Command("nft", "list", "ruleset").CombinedOutput() //nolint:errcheck // it is only shown
			h.t.Fatalf("not within 20 s: %s\n%s", what, out)
		}
	}
}

// same checks that the kernel has exactly what is wanted, and that this is what a start would make of the objects.
func (h *host) same() {
	h.t.Helper()
	e := h.enforcer
	e.mu.Lock()
	defer e.mu.Unlock()
	want := e.state.table(h.table())
	if ok, err := nft.NewKernel().Equals(want); err != nil || !ok {
		out, _ := exec.Command("nft", "list", "ruleset").CombinedOutput() //nolint:errcheck // it is only shown
		h.t.Errorf("the kernel has what is wanted: %v, %v\n%s\n%s", ok, err, want, out)
	}
}

// podNS is a pod's network namespace.
type podNS struct {
	t          testing.TB
	ns         *os.File
	id, addr   string
	disconnect func()
}

// connect makes a pod's network on the host.
func (h *host) connect() *podNS {
	h.t.Helper()
	h.pods++
	p := &podNS{t: h.t, id: fmt.Sprintf("%x", sha256.Sum256([]byte(fmt.Sprint(h.t.Name(), h.pods))))}
	var addr netip.Addr
	p.enter(func() error { return unix.Unshare(unix.CLONE_NEWNET) }, func() (err error) {
		if p.ns, err = os.Open("/proc/thread-self/ns/net"); err != nil {
			return err
		}
		addr, err = h.net.Connect(p.id)
		return err
	})
	p.addr = addr.String()
	p.disconnect = sync.OnceFunc(func() {
		if err := errors.Join(p.ns.Close(), h.net.Disconnect(p.id, addr)); err != nil {
			h.t.Error(err)
		}
		exec.Command("ip", "link", "del", h.net.LinkName(p.id)).Run() //nolint:errcheck // or it goes with the namespace
	})
	h.t.Cleanup(p.disconnect)
	return p
}

// enter runs functions on a thread that ends with them.
func (p *podNS) enter(list ...func() error) {
	p.t.Helper()
	done := make(chan error, 1)
	var run func()
	run = func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() { // the main thread cannot end, and its namespace is the process's
			defer runtime.UnlockOSThread()
			other := make(chan struct{})
			go func() { defer close(other); run() }()
			<-other
			return
		}
		var err error
		for _, f := range list {
			if err == nil {
				err = f()
			}
		}
		done <- err
	}
	go run()
	if err := <-done; err != nil {
		p.t.Fatal(err)
	}
}

// inside runs f in the pod; nil is the host itself.
func (p *podNS) inside(f func() error) (err error) {
	if p == nil {
		return f()
	}
	p.enter(func() error { return unix.Setns(int(p.ns.Fd()), unix.CLONE_NEWNET) }, func() error { err = f(); return nil })
	return err
}

// serve echoes on ports by TCP and UDP.
func (p *podNS) serve(ports ...int) {
	p.t.Helper()
	for _, port := range ports {
		err := p.inside(func() error {
			l, err := net.Listen("tcp4", fmt.Sprintf(":%d", port))
			if err != nil {
				return err
			}
			c, err := net.ListenPacket("udp4", fmt.Sprintf(":%d", port))
			if err != nil {
				return err
			}
			p.t.Cleanup(func() { l.Close(); c.Close() }) //nolint:errcheck // a test's
			go func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					go func() {
						defer conn.Close() //nolint:errcheck // a test's
						b := make([]byte, 100)
						for {
							n, err := conn.Read(b)
							if err != nil {
								return
							}
							conn.Write(b[:n]) //nolint:errcheck // a test's
						}
					}()
				}
			}()
			go func() {
				b := make([]byte, 100)
				for {
					n, from, err := c.ReadFrom(b)
					if err != nil {
						return
					}
					c.WriteTo(b[:n], from) //nolint:errcheck // a test's
				}
			}()
			return nil
		})
		if err != nil {
			p.t.Fatal(err)
		}
	}
}

// How long to wait for an answer that is to come, and for one that is not.
const (
	patient = 5 * time.Second
	quiet   = 200 * time.Millisecond
)

// dial opens a connection, which is expected.
func (p *podNS) dial(network, addr string) (c net.Conn) {
	p.t.Helper()
	if c = p.try(network, addr, patient); c == nil {
		p.t.Fatalf("%s does not reach %s", p.addr, addr)
	}
	return c
}

func (p *podNS) try(network, addr string, within time.Duration) (c net.Conn) {
	err := p.inside(func() (err error) {
		c, err = net.DialTimeout(network+"4", addr, within)
		return err
	})
	if err != nil {
		return nil
	}
	p.t.Cleanup(func() { c.Close() }) //nolint:errcheck // a test's
	return c
}

// echoed reports whether what is sent comes back.
func echoed(c net.Conn, within time.Duration) bool {
	if c == nil {
		return false
	}
	b := make([]byte, 100)
	c.SetDeadline(time.Now().Add(within)) //nolint:errcheck // a test's
	if _, err := c.Write([]byte("x")); err != nil {
		return false
	}
	_, err := c.Read(b)
	return err == nil
}

// expect checks whether a new connection is answered.
func (p *podNS) expect(when, network, addr string, want bool) {
	p.t.Helper()
	within := patient
	if !want {
		within = quiet
	}
	c := p.try(network, addr, within)
	if c != nil {
		defer c.Close() //nolint:errcheck // a test's
	}
	if got := echoed(c, within); got != want {
		p.t.Errorf("%s: %s reaches %s by %s: %v", when, p.addr, addr, network, got)
	}
}
