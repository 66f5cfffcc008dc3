package proxy

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
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"minik8s/internal/api"
	"minik8s/internal/informer"
	"minik8s/internal/machine"
	"minik8s/internal/network"
	"minik8s/internal/nft"
	"minik8s/internal/proxy/plan"
)

// source is a Source that a test fills.
type source[T api.Object] struct {
	mu       sync.Mutex
	objects  map[types.NamespacedName]T
	handlers []informer.Handler[T]
	listed   []func()
}

func newSource[T api.Object]() *source[T] { return &source[T]{objects: map[types.NamespacedName]T{}} }

func (s *source[T]) OnChange(h informer.Handler[T]) { s.handlers = append(s.handlers, h) }
func (s *source[T]) OnList(f func())                { s.listed = append(s.listed, f) }
func (s *source[T]) Get(namespace, name string) (T, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[types.NamespacedName{Namespace: namespace, Name: name}]
	return o, ok
}

func (s *source[T]) List() (out []T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.objects {
		out = append(out, o)
	}
	return out
}

func (s *source[T]) Run(ctx context.Context, ready func()) error {
	for _, o := range s.List() {
		var none T
		for _, h := range s.handlers {
			h(none, o)
		}
	}
	for _, f := range s.listed {
		f()
	}
	ready()
	<-ctx.Done()
	return nil
}

func (s *source[T]) put(o T) {
	name := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
	s.mu.Lock()
	old := s.objects[name]
	s.objects[name] = o
	s.mu.Unlock()
	for _, h := range s.handlers {
		h(old, o)
	}
}

func (s *source[T]) remove(namespace, name string) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	s.mu.Lock()
	old, ok := s.objects[key]
	delete(s.objects, key)
	s.mu.Unlock()
	if ok {
		var none T
		for _, h := range s.handlers {
			h(old, none)
		}
	}
}

// cluster is what the API would have.
type cluster struct {
	services *source[*corev1.Service]
	slices   *source[*discoveryv1.EndpointSlice]
}

func newCluster() cluster {
	return cluster{newSource[*corev1.Service](), newSource[*discoveryv1.EndpointSlice]()}
}

const nodeName = "n1"

// service makes a Service with ports like 80:8080/udp.
func service(name, ip string, change ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: ip}}
	for _, c := range change {
		c(s)
	}
	if s.Spec.Ports == nil {
		port(80, 0)(s)
	}
	return s
}

func port(n, nodePort int32, protocol ...corev1.Protocol) func(*corev1.Service) {
	return func(s *corev1.Service) {
		p := corev1.ServicePort{Name: fmt.Sprintf("p%d", n), Port: n, TargetPort: intstr.FromInt32(n + 8000), NodePort: nodePort, Protocol: corev1.ProtocolTCP}
		if nodePort != 0 && s.Spec.Type == corev1.ServiceTypeClusterIP {
			s.Spec.Type = corev1.ServiceTypeNodePort
		}
		for _, p.Protocol = range protocol {
			p.Name += "-" + strings.ToLower(string(p.Protocol))
		}
		s.Spec.Ports = append(s.Spec.Ports, p)
	}
}

// slice makes the slice of a Service: the first of each pair of endpoints is an address, perhaps with a mark behind it: !
// is not ready, ~ ends and serves, @ is on this node.
func slice(s *corev1.Service, endpoints ...string) *discoveryv1.EndpointSlice {
	out := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name + "-1", Labels: map[string]string{discoveryv1.LabelServiceName: s.Name}}, AddressType: discoveryv1.AddressTypeIPv4}
	for _, p := range s.Spec.Ports {
		n := p.TargetPort.IntVal
		out.Ports = append(out.Ports, discoveryv1.EndpointPort{Name: &p.Name, Port: &n, Protocol: &p.Protocol})
	}
	yes, no, here := true, false, nodeName
	for _, text := range endpoints {
		e := discoveryv1.Endpoint{Conditions: discoveryv1.EndpointConditions{Ready: &yes, Serving: &yes, Terminating: &no}}
		for len(text) > 0 {
			last := text[len(text)-1]
			switch last {
			case '!':
				e.Conditions.Ready, e.Conditions.Serving = &no, &no
			case '~':
				e.Conditions.Ready, e.Conditions.Terminating = &no, &yes
			case '@':
				e.NodeName = &here
			}
			if last >= '0' && last <= '9' {
				break
			}
			text = text[:len(text)-1]
		}
		e.Addresses = []string{text}
		out.Endpoints = append(out.Endpoints, e)
	}
	return out
}

// host is this process's namespace as a node with pods, with somebody outside it and another machine.
type host struct {
	t        testing.TB
	net      *network.Network
	cluster  cluster
	proxy    *Proxy
	kernel   *nft.Kernel
	stop     func()
	pods     int
	outside  *machineNS // 198.51.100.2, whose gateway we are
	neighbor *machineNS // 203.0.113.2, which knows no way but to us
}

const hostAddr = machine.Address

func newHost(t testing.TB) *host {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("namespaces need root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("ip is not installed: make testtools")
	}
	n, err := network.New(network.Config{PodCIDR: netip.MustParsePrefix("10.244.0.0/24"), NodeIP: netip.MustParseAddr(hostAddr), Owner: "proxy", Log: slog.New(slog.DiscardHandler)})
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
	h := &host{t: t, net: n, cluster: newCluster(), kernel: nft.NewKernel()}
	h.outside = h.machine("outside", "198.51.100")
	h.outside.sh("ip route add default via 198.51.100.1")
	h.neighbor = h.machine("neighbor", "203.0.113")
	t.Cleanup(func() {
		h.down()
		if err := Teardown(h.config().Table); err != nil {
			t.Error(err)
		}
	})
	return h
}

func (h *host) config() Config {
	links := h.net.LinkName(fmt.Sprintf("%x", sha256.Sum256([]byte("x"))))[:6]
	return Config{Table: Tables + links[2:], Links: links, Pods: netip.MustParsePrefix("10.244.0.0/24"), Ruleset: h.kernel,
		Log:  slog.New(slog.NewTextHandler(testLog{h.t}, nil)),
		Node: plan.Node{Name: nodeName, Addresses: []netip.Addr{netip.MustParseAddr(hostAddr), netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("203.0.113.1")}}}
}

type testLog struct{ t testing.TB }

func (l testLog) Write(b []byte) (int, error) { l.t.Logf("%s", b); return len(b), nil }

// up starts the proxy as a daemon does.
func (h *host) up() {
	h.t.Helper()
	h.kernel = nft.NewKernel()
	h.cluster.services.handlers, h.cluster.slices.handlers, h.cluster.services.listed, h.cluster.slices.listed = nil, nil, nil, nil
	h.proxy = New(h.config(), h.cluster.services, h.cluster.slices)
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.t.Context()))
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- h.proxy.Run(ctx, func() { close(ready) }) }()
	h.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			h.t.Error(err)
		}
	}
	select {
	case <-ready:
	case <-time.After(2 * time.Minute): // with ten thousand Services on a busy machine
		h.t.Fatal("the proxy does not become ready")
	}
}

func (h *host) down() {
	if h.stop != nil {
		h.stop()
		h.stop = nil
	}
}

// put changes a Service and its endpoints, and waits until the kernel has it.
func (h *host) put(s *corev1.Service, endpoints ...string) {
	h.t.Helper()
	h.cluster.services.put(s)
	h.cluster.slices.put(slice(s, endpoints...))
	h.caughtUp()
}

// caughtUp waits until all that was told is in the kernel.
func (h *host) caughtUp() {
	h.t.Helper()
	h.until("the proxy has caught up", func() bool {
		h.proxy.mu.Lock()
		defer h.proxy.mu.Unlock()
		h.proxy.seen.Lock()
		defer h.proxy.seen.Unlock()
		return len(h.proxy.seen.dirty) == 0 && h.proxy.keeper.Synced()
	})
}

func (h *host) until(what string, ok func() bool) {
	h.t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			out, _ := exec.Command("nft", "list", "ruleset").CombinedOutput()
			h.t.Fatalf("not within 20 s: %s\n%s", what, out)
		}
	}
}

// machineNS is a network namespace.
type machineNS struct {
	t    testing.TB
	ns   *os.File
	addr string
}

// machine makes a namespace on a wire to the host, which has the address .1 there; it has .2.
func (h *host) machine(name, subnet string) *machineNS {
	h.t.Helper()
	m := &machineNS{t: h.t, addr: subnet + ".2"}
	m.enter(func() error { return unix.Unshare(unix.CLONE_NEWNET) }, func() (err error) {
		m.ns, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	h.t.Cleanup(func() {
		exec.Command("ip", "link", "del", name).Run() //nolint:errcheck // it goes with the namespace
		m.ns.Close()                                  //nolint:errcheck // it was only read
	})
	sh(h.t, m.ns, "ip link add "+name+" type veth peer name eth0 netns /dev/fd/3 && ip addr add "+subnet+".1/24 dev "+name+" && ip link set "+name+" up")
	m.sh("ip link set lo up && ip addr add " + m.addr + "/24 dev eth0 && ip link set eth0 up")
	return m
}

func (m *machineNS) sh(line string) {
	m.t.Helper()
	sh(m.t, m.ns, "nsenter --net=/dev/fd/3 sh -c '"+line+"'")
}

func sh(t testing.TB, file *os.File, line string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", line)
	cmd.ExtraFiles = []*os.File{file}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", line, err, out)
	}
}

// pod makes a pod on the host.
func (h *host) pod() *machineNS {
	h.t.Helper()
	h.pods++
	id := fmt.Sprintf("%x", sha256.Sum256([]byte(fmt.Sprint(h.t.Name(), h.pods))))
	m := &machineNS{t: h.t}
	var addr netip.Addr
	m.enter(func() error { return unix.Unshare(unix.CLONE_NEWNET) }, func() (err error) {
		if m.ns, err = os.Open("/proc/thread-self/ns/net"); err != nil {
			return err
		}
		addr, err = h.net.Connect(id)
		return err
	})
	m.addr = addr.String()
	h.t.Cleanup(func() {
		if err := errors.Join(m.ns.Close(), h.net.Disconnect(id, addr)); err != nil {
			h.t.Error(err)
		}
		exec.Command("ip", "link", "del", h.net.LinkName(id)).Run() //nolint:errcheck // or it goes with the namespace
	})
	return m
}

// enter runs functions on a thread that ends with them.
func (m *machineNS) enter(list ...func() error) {
	m.t.Helper()
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
		m.t.Fatal(err)
	}
}

// inside runs f in the namespace; nil is the host's own.
func (m *machineNS) inside(f func() error) error {
	if m == nil || m.ns == nil {
		return f()
	}
	var err error
	m.enter(func() error { return unix.Setns(int(m.ns.Fd()), unix.CLONE_NEWNET) }, func() error { err = f(); return nil })
	return err
}

// serve answers on a port by TCP and UDP with a name and the client's address.
func (m *machineNS) serve(name string, port int) {
	m.t.Helper()
	err := m.inside(func() error {
		l, err := net.Listen("tcp4", fmt.Sprintf(":%d", port))
		if err != nil {
			return err
		}
		c, err := net.ListenPacket("udp4", fmt.Sprintf(":%d", port))
		if err != nil {
			return err
		}
		m.t.Cleanup(func() { l.Close(); c.Close() }) //nolint:errcheck // a test's
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				fmt.Fprintf(conn, "%s %s", name, conn.RemoteAddr().(*net.TCPAddr).IP) //nolint:errcheck // a test's
				conn.Close()                                                          //nolint:errcheck // a test's
			}
		}()
		go func() {
			b := make([]byte, 100)
			for {
				_, from, err := c.ReadFrom(b)
				if err != nil {
					return
				}
				c.WriteTo([]byte(name+" "+from.(*net.UDPAddr).IP.String()), from) //nolint:errcheck // a test's
			}
		}()
		return nil
	})
	if err != nil {
		m.t.Fatal(err)
	}
}

// The outcomes of a call that is not answered.
const (
	refused = "refused"
	silence = "silence"
)

// patience is how long to wait for an answer that is not to come.
const patience = 300 * time.Millisecond

// call calls once and returns who answered, and which client he saw.
func (m *machineNS) call(network, addr string) (server, client string) {
	m.t.Helper()
	return m.callWithin(network, addr, 5*time.Second)
}

func (m *machineNS) callWithin(network, addr string, within time.Duration) (server, client string) {
	err := m.inside(func() error {
		c, err := net.DialTimeout(network+"4", addr, within)
		if err != nil {
			return err
		}
		defer c.Close() //nolint:errcheck // a test's
		return ask(c, network, within, &server, &client)
	})
	return outcome(err, server), client
}

func ask(c net.Conn, network string, within time.Duration, server, client *string) error {
	if err := c.SetDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	if network == "udp" {
		if _, err := c.Write([]byte("x")); err != nil {
			return err
		}
	}
	b := make([]byte, 100)
	n, err := c.Read(b)
	if err != nil {
		return err
	}
	_, err = fmt.Sscan(string(b[:n]), server, client)
	return err
}

func outcome(err error, server string) string {
	var timeout net.Error
	switch {
	case err == nil:
		return server
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPERM):
		// The host's own datagrams are refused before they are sent: EPERM.
		return refused
	case errors.As(err, &timeout) && timeout.Timeout():
		return silence
	}
	return err.Error()
}
