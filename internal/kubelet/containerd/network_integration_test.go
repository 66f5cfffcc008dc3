package containerd

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

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

// A node that is given another range of pod addresses, because the one that it had is another node's now, makes the sandboxes
// of its pods anew. Those on the host's network stay.
func TestAnotherRange(t *testing.T) {
	b := newBench(t)
	b.up("old", "sleep", "1000")
	host := b.sandboxConfig("host")
	host.HostNetwork = true
	if _, err := b.EnsureSandbox(b.ctx, host); err != nil {
		t.Fatal(err)
	}
	changes := b.Events(b.ctx)
	given := netip.MustParsePrefix("10.88.64.0/24")
	if err := b.network.SetPodCIDR(b.ctx, given); err != nil {
		t.Fatal(err)
	}
	b.NetworkChanged(b.ctx)
	b.RangeGiven(given)
	for e := range changes {
		if e.PodUID == "uid-old" {
			break
		}
	}
	for uid, whole := range map[string]bool{"uid-old": false, "uid-host": true} {
		if p, err := b.Pod(b.ctx, uid); err != nil || p.Sandbox == nil || p.Sandbox.Whole != whole {
			t.Errorf("%s: %+v %v", uid, p.Sandbox, err)
		}
	}
	s, err := b.EnsureSandbox(b.ctx, b.sandboxConfig("old"))
	if err != nil {
		t.Fatal(err)
	}
	if !s.Whole || len(s.Addresses) != 1 || !given.Contains(s.Addresses[0]) {
		t.Errorf("the new sandbox is %+v", s)
	}
	if p, err := b.Pod(b.ctx, "uid-old"); err != nil || len(p.Containers) != 0 {
		t.Errorf("containers of the old sandbox are left: %+v %v", p.Containers, err)
	}
}
