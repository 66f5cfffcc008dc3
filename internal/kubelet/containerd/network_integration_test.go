package containerd

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"minik8s/internal/kubelet/cri"
)

// get is what an HTTP server in a pod or in front of it answers.
func get(addr, path string) (string, error) {
	c, err := net.DialTimeout("tcp", addr, 2*time.Second)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	fmt.Fprintf(c, "GET %s HTTP/1.0\r\n\r\n", path)
	data, err := io.ReadAll(c)
	_, body, _ := strings.Cut(string(data), "\r\n\r\n")
	return body, err
}

func (b *bench) waitFor(addr, path, want string) {
	b.t.Helper()
	eventually(b.t, addr+" answers", func() error {
		got, err := get(addr, path)
		if err == nil && got != want {
			err = fmt.Errorf("%q, want %q", got, want)
		}
		return err
	})
}

func TestPodsReachAndAreReached(t *testing.T) {
	b := newBench(t)
	host := net.JoinHostPort("192.0.2.1", "30080")
	server := b.sandboxConfig("server")
	server.HostPorts = []cri.HostPort{{HostPort: 30080, ContainerPort: 80, Protocol: "TCP"}, {HostIP: "192.0.2.1", HostPort: 30081, ContainerPort: 80, Protocol: "TCP"}}
	s, err := b.EnsureSandbox(b.ctx, server)
	if err != nil {
		t.Fatal(err)
	}
	cfg := b.containerConfig("server", "c")
	cfg.Image = "minik8s/hello"
	b.start(cfg)
	pod := s.Addresses[0].String()
	b.waitFor(net.JoinHostPort(pod, "80"), "/", "server\n")
	b.waitFor(host, "/", "server\n")
	b.waitFor("192.0.2.1:30081", "/", "server\n")
	b.waitFor("127.0.0.1:30080", "/", "server\n")
	if _, err := get("127.0.0.1:30081", "/"); err == nil {
		t.Error("a port bound to one address answers on another")
	}

	// From a pod: to the other pod, to the host's port, and the server to itself by that.
	try := fmt.Sprintf("for a in %s:80 %s; do wget -qO- http://$a/; done", pod, host)
	id := b.up("client", "sh", "-c", try)
	b.waitExit(id)
	if got, want := b.log(id), "server\nserver\n"; got != want {
		t.Errorf("a pod got %q, want %q", got, want)
	}
	self := b.containerConfig("server", "self", "sh", "-c", try)
	id = b.start(self)
	b.waitExit(id)
	if got, want := b.log(id), "server\nserver\n"; got != want {
		t.Errorf("the pod itself got %q, want %q", got, want)
	}

	// A port that is taken is refused, by name, and nothing is left of the attempt.
	other := b.sandboxConfig("other")
	other.HostPorts = server.HostPorts[:1]
	if _, err := b.EnsureSandbox(b.ctx, other); err == nil || !strings.Contains(err.Error(), "30080") {
		t.Errorf("a host port that is taken: %v", err)
	}
	b.restart()
	b.waitFor(host, "/", "server\n")
	if err := b.removePod(b.ctx, "uid-server"); err != nil {
		t.Fatal(err)
	}
	if _, err := get(host, "/"); err == nil {
		t.Error("the host port of a pod that is gone answers")
	}
	if _, err := b.EnsureSandbox(b.ctx, other); err != nil {
		t.Errorf("the port is free again, but: %v", err)
	}
}

// What leaves for the world comes from the node's address.
func TestEgressIsMasqueraded(t *testing.T) {
	b := newBench(t)
	dir := t.TempDir()
	listener := make(chan net.Listener, 1)
	wire, err := netlink.LinkByName("wire0")
	if err != nil {
		t.Fatal(err)
	}
	err = makeNamespaces(dir, []string{"net"}, func() error { return nil })
	t.Cleanup(func() {
		if err := unmount(dir + "/net"); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(dir + "/net")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := netlink.LinkSetNsFd(wire, int(f.Fd())); err != nil {
		t.Fatal(err)
	}
	err = inNamespaces(dir, []string{"net"}, func() error {
		link, err := netlink.LinkByName("wire0")
		if err != nil {
			return err
		}
		addr, err := netlink.ParseAddr("192.0.2.254/24")
		if err != nil {
			return err
		}
		l, err := net.Listen("tcp", "0.0.0.0:8080")
		listener <- l
		// The link goes home at the end, for the tests that follow.
		return errors.Join(err, netlink.AddrAdd(link, addr), netlink.LinkSetUp(link))
	})
	if err != nil {
		t.Fatal(err)
	}
	l := <-listener
	defer l.Close()
	from := make(chan string, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		from <- c.RemoteAddr().String()
	}()
	id := b.up("client", "sh", "-c", "echo x | nc -w 5 192.0.2.254 8080")
	b.waitExit(id)
	select {
	case a := <-from:
		if netip.MustParseAddrPort(a).Addr() != netip.MustParseAddr("192.0.2.1") {
			t.Errorf("the world sees %s, want the node's 192.0.2.1", a)
		}
	case <-time.After(10 * time.Second):
		t.Errorf("nothing arrived; the pod says %q", b.log(id))
	}
	if err := inNamespaces(dir, []string{"net"}, func() error {
		link, err := netlink.LinkByName("wire0")
		if err != nil {
			return err
		}
		return netlink.LinkSetNsPid(link, os.Getpid())
	}); err != nil {
		t.Error(err)
	}
	if link, err := netlink.LinkByName("wire0"); err != nil || netlink.LinkSetUp(link) != nil {
		t.Error("the link did not come home", err)
	}
}

func TestHostNetworkPod(t *testing.T) {
	b := newBench(t)
	cfg := b.sandboxConfig("web")
	cfg.HostNetwork, cfg.Hostname = true, ""
	s, err := b.EnsureSandbox(b.ctx, cfg)
	if err != nil || len(s.Addresses) == 0 || s.Addresses[0] != netip.MustParseAddr("192.0.2.1") {
		t.Fatalf("%+v, %v", s, err)
	}
	id := b.start(b.containerConfig("web", "c", "sh", "-c", "ip -o addr show eth0 | grep -c 192.0.2.1; head -1 /etc/hosts"))
	b.waitExit(id)
	if got, want := b.log(id), "1\n# Kubernetes-managed hosts file (host network).\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
