package proxy

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os/exec"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/nft"
)

// What others do to the table is undone, and other tables are none of our business.
func TestOthersChangesAreRepaired(t *testing.T) {
	h := newHost(t)
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip("nft is not installed: make testtools")
	}
	a, c := h.pod(), h.pod()
	a.serve("a", 8080)
	h.up()
	h.put(service("web", "10.96.0.1", port(80, 30080), sticky(60)), a.addr+"@")
	h.put(service("other", "10.96.0.2"), a.addr+"@")
	table := h.config().Table
	for _, line := range []string{
		"delete table ip " + table,
		"flush ruleset",
		"flush chain ip " + table + " prerouting",
		"flush chain ip " + table + " svc-default/other/tcp/p80",
		"add rule ip " + table + " output drop",
		"add chain ip " + table + " theirs",
		"add set ip " + table + " theirs { type ipv4_addr; }",
		"delete element ip " + table + " services { 10.96.0.1 . tcp . 80 }",
		"add element ip " + table + " cluster-ips { 10.1.1.1 }",
		"flush map ip " + table + " endpoints",
	} {
		if out, err := exec.Command("nft", line).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", line, err, out)
		}
		h.until("repaired after: "+line, func() bool {
			h.proxy.mu.Lock()
			want := h.proxy.state.table()
			h.proxy.mu.Unlock()
			same, err := isSame(want)
			return err == nil && same
		})
		if server, _ := c.call("tcp", "10.96.0.1:80"); server != "a" {
			t.Errorf("after %s: %s", line, server)
		}
	}
}

// isSame compares the kernel with a table and changes nothing.
func isSame(want nft.Table) (bool, error) { return nft.NewKernel().Equals(want) }

// A daemon that is killed between two batches, or is away while much changes, leaves what the next one repairs.
func TestKilledBetweenBatches(t *testing.T) {
	h := newHost(t)
	a, b, c := h.pod(), h.pod(), h.pod()
	a.serve("a", 8080)
	b.serve("b", 8080)
	h.up()
	for i := range 20 {
		h.put(service(fmt.Sprint("s", i), fmt.Sprintf("10.96.0.%d", i+1)), a.addr+"@")
	}
	h.down()
	for i := range 20 {
		name := fmt.Sprint("s", i)
		s := service(name, fmt.Sprintf("10.96.0.%d", i+1))
		switch i % 4 {
		case 0:
			h.cluster.services.remove("default", name)
			h.cluster.slices.remove("default", name+"-1")
		case 1:
			h.cluster.slices.put(slice(s, b.addr+"@"))
		case 2:
			h.cluster.slices.put(slice(s))
		}
	}
	// One batch of the next run gets through; then that is killed, too.
	k := &failing{Kernel: nft.NewKernel(), left: 0}
	h.kernel = k.Kernel
	if err := k.Edit(h.config().Table, nft.Edit{Chains: []nft.Chain{{Name: "svc-default/s3/tcp/p80"}, {Name: "svc-default/half/tcp/p80"}}}); err == nil {
		t.Fatal("a batch got through that should not")
	}
	if err := k.Kernel.Edit(h.config().Table, nft.Edit{Chains: []nft.Chain{{Name: "svc-default/s3/tcp/p80"}, {Name: "svc-default/half/tcp/p80"}}}); err != nil {
		t.Fatal(err)
	}
	h.up()
	h.same()
	for i, want := range []string{silence, "b", refused, "a"} {
		if i == 0 {
			continue // that address is nobody's now
		}
		if server, _ := c.call("tcp", fmt.Sprintf("10.96.0.%d:80", i+1)); server != want {
			t.Errorf("service s%d: %s, want %s", i, server, want)
		}
	}
}

// failing is a kernel of which some batches do not get through.
type failing struct {
	*nft.Kernel
	left int
}

func (f *failing) Edit(table string, e nft.Edit) error {
	if f.left--; f.left < 0 {
		return errors.New("killed")
	}
	return f.Kernel.Edit(table, e)
}

// same checks that the kernel has exactly what is wanted.
func (h *host) same() {
	h.t.Helper()
	h.proxy.mu.Lock()
	want := h.proxy.state.table()
	h.proxy.mu.Unlock()
	if same, err := isSame(want); err != nil || !same {
		h.t.Errorf("the kernel has what is wanted: %v, %v", same, err)
	}
}

// After any sequence of changes the kernel has exactly what a proxy that starts then would make.
func TestRandomSequences(t *testing.T) {
	h := newHost(t)
	h.up()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	change := func() {
		name := fmt.Sprint("s", r.IntN(12))
		if r.IntN(5) == 0 {
			h.cluster.services.remove("default", name)
			return
		}
		if r.IntN(8) == 0 {
			h.cluster.slices.remove("default", name+"-1")
			return
		}
		s := randomService(r, name)
		if r.IntN(2) == 0 {
			h.cluster.services.put(s)
		}
		var list []string
		for range r.IntN(6) {
			list = append(list, fmt.Sprintf("10.244.%d.%d%s", r.IntN(2), 100+r.IntN(8), []string{"", "@", "@~", "!", "~"}[r.IntN(5)]))
		}
		h.cluster.slices.put(slice(s, list...))
	}
	for range 40 {
		for range 1 + r.IntN(10) {
			change()
		}
		h.caughtUp()
		h.same()
	}
	if edits, refused := h.proxy.keeper.Counts(); edits < 30 || refused > 0 {
		t.Errorf("%d piecewise changes, of which the kernel refused %d", edits, refused)
	}
	fresh := newState(h.config().Table, h.proxy.state.renderer)
	updates := map[string]bool{}
	for name := range h.proxy.state.entries {
		updates[name.String()] = true
	}
	all := map[types.NamespacedName]*entry{}
	for _, svc := range h.cluster.services.List() {
		if e := h.proxy.planned(nameOf(svc, nil)); e != nil {
			all[nameOf(svc, nil)] = e
		}
	}
	fresh.change(all)
	if len(all) != len(updates) {
		t.Errorf("%d services are wanted, %d are there", len(all), len(updates))
	}
	// Endpoints keep their places, which a fresh start may give otherwise; all else is the same.
	was, is := counts(h.proxy.state.table()), counts(fresh.table())
	if fmt.Sprint(was) != fmt.Sprint(is) {
		t.Errorf("after the changes %v, afresh %v", was, is)
	}
}

// counts is how many elements each set has, and how many chains there are.
func counts(t nft.Table) map[string]int {
	out := map[string]int{"chains": len(t.Chains)}
	for _, s := range t.Sets {
		out[s.Name] = len(s.Elements)
	}
	return out
}

func randomService(r *rand.Rand, name string) *corev1.Service {
	var changes []func(*corev1.Service)
	maybe := func(n int, c func(*corev1.Service)) {
		if r.IntN(n) == 0 {
			changes = append(changes, c)
		}
	}
	maybe(3, sticky(100))
	maybe(4, local)
	maybe(4, internalLocal)
	maybe(3, external("198.18.0.1", "198.18.0.2")) // several want them
	maybe(4, balanced("198.18.0.2"))
	maybe(5, balanced("198.18.0.3", "198.51.100.0/24"))
	n := int32(name[len(name)-1] - '0')
	changes = append(changes, port(80, 0))
	maybe(2, port(443, 30000+n))
	maybe(2, port(53, 31000+n, corev1.ProtocolUDP))
	maybe(3, port(99, 0, corev1.ProtocolSCTP))
	return service(name, "10.96.0."+name[1:], changes...)
}

// UDP flows do not stay with endpoints that are gone, nor without any when the first one comes.
func TestUDPFollowsEndpoints(t *testing.T) {
	h := newHost(t)
	a, b, c := h.pod(), h.pod(), h.pod()
	a.serve("a", 8053)
	b.serve("b", 8053)
	h.up()
	dns := service("dns", "10.96.3.1", port(53, 30353, corev1.ProtocolUDP))
	h.put(dns, a.addr+"@")
	var conn, node net.Conn
	dial := func(addr string) (conn net.Conn) {
		err := c.inside(func() (err error) { conn, err = net.Dial("udp4", addr); return err })
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() }) //nolint:errcheck // a test's
		return conn
	}
	conn, node = dial("10.96.3.1:53"), dial(hostAddr+":30353")
	early := dial("10.96.3.2:53")
	early.Write([]byte("x")) //nolint:errcheck // nobody is there yet
	answered := func(c net.Conn, want, when string) {
		t.Helper()
		h.until(want+" answers "+when, func() bool {
			var server, client string
			return outcome(ask(c, "udp", patience, &server, &client), server) == want
		})
	}
	answered(conn, "a", "first")
	answered(node, "a", "first, by the node port")
	h.put(dns, b.addr+"@")
	answered(conn, "b", "after the endpoint went")
	answered(node, "b", "after the endpoint went, by the node port")
	h.put(dns)
	answered(conn, refused, "after the last one went")
	h.put(dns, a.addr+"@")
	answered(conn, "a", "when one came")
	h.put(service("late", "10.96.3.2", port(53, 0, corev1.ProtocolUDP)), b.addr+"@")
	answered(early, "b", "when the service came")
	h.down()
	h.cluster.slices.put(slice(dns, b.addr+"@"))
	h.up()
	answered(conn, "b", "after the daemon was away")
	h.down()
	h.cluster.services.remove(dns.Namespace, dns.Name)
	gone := slice(dns, b.addr+"@")
	h.cluster.slices.remove(gone.Namespace, gone.Name)
	h.up()
	h.until("nobody answers for a service that went while the daemon was away", func() bool {
		var server, client string
		return outcome(ask(conn, "udp", patience, &server, &client), server) != "b"
	})
}

// A node port is reached by each address of the host, and its flows are followed at all of them: the Node does not say every one.
func TestUDPFollowsEndpointsAtOtherAddresses(t *testing.T) {
	h := newHost(t)
	a, b, c := h.pod(), h.pod(), h.pod()
	a.serve("a", 8053)
	b.serve("b", 8053)
	other := netip.MustParsePrefix("198.51.100.7/32")
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: other.Addr().AsSlice(), Mask: net.CIDRMask(32, 32)}}
	if err := netlink.AddrAdd(lo, addr); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { netlink.AddrDel(lo, addr) }) //nolint:errcheck // the namespace ends with the tests
	h.up()
	dns := service("dns", "10.96.3.1", port(53, 30353, corev1.ProtocolUDP))
	h.put(dns, a.addr+"@")
	var conn net.Conn
	if err := c.inside(func() (err error) { conn, err = net.Dial("udp4", other.Addr().String()+":30353"); return err }); err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // a test's
	answered := func(want string) {
		t.Helper()
		h.until(want+" answers", func() bool {
			var server, client string
			return outcome(ask(conn, "udp", patience, &server, &client), server) == want
		})
	}
	answered("a")
	h.put(dns, b.addr+"@")
	answered("b")
}

// A TCP connection to an endpoint that goes ends when it likes.
func TestTCPIsDrained(t *testing.T) {
	h := newHost(t)
	a, b, c := h.pod(), h.pod(), h.pod()
	b.serve("b", 8080)
	var l net.Listener
	if err := a.inside(func() (err error) { l, err = net.Listen("tcp4", ":8080"); return err }); err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // a test's
	h.up()
	web := service("web", "10.96.4.1")
	h.put(web, a.addr+"@")
	var conn net.Conn
	if err := c.inside(func() (err error) { conn, err = net.Dial("tcp4", "10.96.4.1:80"); return err }); err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // a test's
	served, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer served.Close() //nolint:errcheck // a test's
	h.put(web, b.addr+"@")
	if server, _ := c.call("tcp", "10.96.4.1:80"); server != "b" {
		t.Errorf("a new connection: %s", server)
	}
	go served.Write([]byte("a still")) //nolint:errcheck // read below
	var server, rest string
	if err := ask(conn, "tcp", 5*time.Second, &server, &rest); err != nil || server != "a" {
		t.Errorf("the old connection: %s, %v", server, err)
	}
}

// When the node changes all Services are planned anew: here its zone, by which hints choose endpoints, and what it serves.
func TestNodeChanges(t *testing.T) {
	h := newHost(t)
	a, b, c := h.pod(), h.pod(), h.pod()
	a.serve("a", 8080)
	b.serve("b", 8080)
	h.up()
	web := service("web", "10.96.5.1", port(80, 30580))
	s := slice(web, a.addr+"@", b.addr+"@")
	for i, zone := range []string{"east", "west"} {
		s.Endpoints[i].Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: zone}}}
	}
	h.cluster.services.put(web)
	h.cluster.slices.put(s)
	node := h.config().Node
	for _, step := range []struct{ zone, want string }{{"east", "a"}, {"west", "b"}, {"east", "a"}} {
		node.Zone = step.zone
		h.proxy.SetNode(node, h.config().Pods)
		h.until("zone "+step.zone, func() bool {
			for range 3 {
				if server, _ := c.call("tcp", "10.96.5.1:80"); server != step.want {
					return false
				}
			}
			return true
		})
		h.caughtUp() // loopback follows the kernel
		if server, _ := (&machineNS{t: t}).call("tcp", "127.0.0.1:30580"); server != step.want {
			t.Errorf("zone %s, by loopback: %s", step.zone, server)
		}
	}
	node.Served = []netip.Addr{netip.MustParseAddr("10.96.5.1")}
	h.proxy.SetNode(node, h.config().Pods)
	h.until("the service is left to the node", func() bool {
		server, _ := (&machineNS{t: t}).call("tcp", hostAddr+":30580")
		return server == refused
	})
	h.same()
}
