package network

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/network/host"
)

func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !check() {
		if time.Now().After(deadline) {
			t.Fatal("not in time:", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func real(t *testing.T) *Network {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a network needs root")
	}
	n, err := New(Config{PodCIDR: podRange, Owner: t.Name(), StateFile: filepath.Join(t.TempDir(), "network.json"),
		Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func sysctl(t *testing.T, key string) string {
	t.Helper()
	v, err := host.Sysctl(key)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Changes of the host are undone, and its loopback is never routed.
func TestTheHostIsGivenBack(t *testing.T) {
	n := real(t)
	if got := sysctl(t, "net/ipv4/ip_forward"); got != "0" {
		t.Fatal("a new machine forwards:", got)
	}
	// As an earlier version left it.
	old := n.desired()
	old.Chains[0].Name = "guard"
	if err := n.nf.Apply(old); err != nil {
		t.Fatal(err)
	}
	if err := host.SetSysctl("net/ipv4/conf/all/route_localnet", "1"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := n.Setup(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := sysctl(t, "net/ipv4/conf/all/route_localnet"); got != "0" {
		t.Error("the host's loopback is routed:", got)
	}
	if got := sysctl(t, "net/ipv4/ip_forward"); got != "1" {
		t.Error("nothing is forwarded:", got)
	}
	// An address that no pod has.
	if c, err := net.Dial("udp", "10.244.0.77:53"); err == nil {
		c.Close()
		t.Error("an unused pod address has a route")
	}
	if err := n.SetPodCIDR(t.Context(), netip.MustParsePrefix("10.245.0.0/24")); err != nil {
		t.Fatal(err)
	}
	if c, err := net.Dial("udp", "10.244.0.77:53"); err != nil {
		t.Error("the range that was before is still held:", err)
	} else {
		c.Close()
	}
	if err := n.Teardown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := sysctl(t, "net/ipv4/ip_forward"); got != "0" {
		t.Error("forwarding is not given back:", got)
	}
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range routes {
		if r.Dst != nil && strings.HasPrefix(r.Dst.String(), "10.24") {
			t.Error("left behind:", r)
		}
	}
	if _, err := os.Stat(n.cfg.StateFile); !os.IsNotExist(err) {
		t.Error("left behind: the state file", err)
	}
	if c, err := n.nf.Chains(tables); err != nil || len(c) > 0 {
		t.Error("left behind:", c, err)
	}
}

// However the rules are removed, they are restored, once.
func TestRulesComeBack(t *testing.T) {
	n := real(t)
	if err := n.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Teardown(t.Context()); err != nil {
			t.Error(err)
		}
	})
	if err := n.AddHostPorts("a", netip.MustParseAddr("10.244.0.9"), []corev1.ContainerPort{{HostPort: 4053, ContainerPort: 53, Protocol: "UDP"}}); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); n.Keep(t.Context()) }()
	t.Cleanup(func() { <-done })
	whole := func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		same, err := n.nf.Same(n.desired())
		return err == nil && same
	}
	for range 3 {
		c, err := nftables.New()
		if err != nil {
			t.Fatal(err)
		}
		c.FlushRuleset()
		if err := c.Flush(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		eventually(t, "the rules are whole again", whole)
		t.Log("flushed to whole again:", time.Since(began))
	}
	// Host ports change while nothing is there: neither is lost.
	c, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	c.FlushRuleset()
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := n.AddHostPorts("b", netip.MustParseAddr("10.244.0.8"), []corev1.ContainerPort{{HostPort: 4080, ContainerPort: 80}}); err != nil {
		t.Error(err)
	}
	if err := n.removeHostPorts("a"); err != nil {
		t.Error(err)
	}
	eventually(t, "the rules are whole again", whole)
}

// What pods share of the host is put back when somebody takes it away: a network manager that knows only its own
// routes and addresses, or a sysctl file that is read again.
func TestWhatPodsShareIsPutBack(t *testing.T) {
	n := real(t)
	if err := n.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	kept := make(chan struct{})
	go func() { defer close(kept); n.Keep(ctx) }()
	defer func() {
		stop()
		<-kept
		if err := n.Teardown(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	whole := func() bool {
		ok, err := n.sharedComplete(podRange)
		return err == nil && ok
	}
	lo, err := n.host.LinkByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // also after a repair
		if err := n.host.RouteDel(n.unreachable(podRange)); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the range's route is back", whole)
		other := n.unreachable(podRange)
		other.Type = unix.RTN_BLACKHOLE
		if err := n.host.RouteReplace(other); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a route in its place is replaced", whole)
		if err := n.host.AddrDel(lo, &netlink.Addr{IPNet: host.Single(host.Gateway), Scope: int(netlink.SCOPE_LINK)}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the gateway's address is back", whole)
	}
	for range 2 {
		if err := host.SetSysctl("net/ipv4/ip_forward", "0"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "forwarding is on again", whole)
		if err := n.host.LinkSetDown(lo); err != nil {
			t.Fatal(err)
		}
		eventually(t, "lo is up again", whole)
	}
}

// The way to a pod that is there already is found again, at the start and whenever somebody takes it away.
func TestPodsAreFoundAgain(t *testing.T) {
	n := real(t)
	if err := n.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	const sandbox = "0123456789abcdef"
	addr := podRange.Addr().Next().Next()
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: n.LinkName(sandbox), HardwareAddr: hostMAC}, PeerName: "inpod"}
	if err := n.host.LinkAdd(veth); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.host.LinkDel(veth) }) //nolint:errcheck // it goes with the namespace at the latest
	if err := n.host.LinkSetUp(veth); err != nil {
		t.Fatal(err)
	}
	n.Restore(sandbox, addr)
	n.Restore("fedcba9876543210", addr.Next()) // its link is deleted: there is nothing to restore
	ctx, stop := context.WithCancel(t.Context())
	kept := make(chan struct{})
	go func() { defer close(kept); n.Keep(ctx) }()
	defer func() {
		stop()
		<-kept
		if err := n.Teardown(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	route := &netlink.Route{LinkIndex: veth.Attrs().Index, Dst: host.Single(addr), Scope: netlink.SCOPE_LINK}
	there := func() bool {
		routes, err := host.Dump(func() ([]netlink.Route, error) {
			return n.host.RouteListFiltered(netlink.FAMILY_V4, route, netlink.RT_FILTER_DST|netlink.RT_FILTER_OIF)
		})
		return err == nil && len(routes) == 1
	}
	eventually(t, "a route at the start", there)
	for range 3 {
		if err := n.host.RouteDel(route); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the route is back", there)
	}
}

// A daemon that starts again has the range that it had, whatever it thinks likely, and without asking anybody.
func TestRangeOfAnEarlierRun(t *testing.T) {
	n := running(t)
	given := netip.MustParsePrefix("10.244.7.0/24")
	if err := n.SetPodCIDR(t.Context(), given); err != nil {
		t.Fatal(err)
	}
	for _, likely := range []netip.Prefix{{}, podRange} {
		again, err := New(Config{PodCIDR: likely, Owner: t.Name(), Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if got := again.PodCIDR(); got != given {
			t.Errorf("likely %v: it has %v", likely, got)
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	}
	other, err := New(Config{PodCIDR: podRange, Owner: "another daemon", Log: slog.New(slog.DiscardHandler)})
	if err != nil || other.PodCIDR() != podRange {
		t.Error(other.PodCIDR(), err)
	}
	other.Close()
}

// The route to a pod goes with it, also while something keeps its namespace, as a connection to somebody who is away does: the
// address may be another node's by then. That of another pod, or of one that has the address next, stays.
func TestRouteGoesWithItsPod(t *testing.T) {
	n := running(t)
	gone, stays := newPod(t, n, "gone"), newPod(t, n, "stays")
	routes := func(to netip.Addr) int {
		t.Helper()
		all, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Dst: host.Single(to)}, netlink.RT_FILTER_DST)
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	if routes(gone.addr) != 1 || routes(stays.addr) != 1 {
		t.Fatal("there is no route to a pod")
	}
	for range 2 {
		if err := n.Disconnect(gone.id, gone.addr); err != nil {
			t.Fatal(err)
		}
		if routes(gone.addr) != 0 || routes(stays.addr) != 1 {
			t.Errorf("%d routes to a pod that is gone, %d to one that is not", routes(gone.addr), routes(stays.addr))
		}
	}
}
