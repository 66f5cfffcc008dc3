package proxy

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/nft"
	"minik8s/internal/proxy/plan"
)

func testState() *state {
	return newState(Tables+"ab12", renderer{links: "mkab12", pods: netip.MustParsePrefix("10.244.0.0/24"),
		node: plan.Node{Name: nodeName, Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}})
}

// add plans a Service as catchUp does.
func (s *state) add(svc *corev1.Service, list ...string) nft.Edit {
	return s.change(map[types.NamespacedName]*entry{nameOf(svc, nil): {plan: plan.Of(svc, one(slice(svc, list...)), s.node), created: svc.CreationTimestamp.Time}})
}

func one[T any](x T) []T { return []T{x} }

// The rules as the nft tool would show them: the frame, and the chains of Services of every kind.
func TestRules(t *testing.T) {
	s := testState()
	s.add(service("web", "10.96.0.1", port(80, 0)), "10.244.0.5@", "10.244.1.5")
	s.add(service("none", "10.96.0.2", port(80, 0), port(53, 30053, corev1.ProtocolUDP)))
	s.add(service("sticky", "10.96.0.3", sticky(10800)), "10.244.0.5@", "10.244.1.5")
	s.add(service("local", "10.96.0.4", port(80, 30080), local, balanced("198.18.0.1", "203.0.113.0/24")), "10.244.1.5")
	tab := s.table()
	elements := map[string]int{}
	for i, set := range tab.Sets {
		elements[set.Name] = len(set.Elements)
		tab.Sets[i].Elements = nil
	}
	got := tab.String()
	frame, _, _ := strings.Cut(got, "\tset clients")
	want := `table ip minik8s-services-ab12 {
	map services {
		type ipv4_addr . inet_proto . inet_service : verdict
	}
	map node-ports {
		type inet_proto . inet_service : verdict
	}
	map endpoints {
		type ipv4_addr . inet_proto . inet_service . mark : ipv4_addr . inet_service
	}
	map local-endpoints {
		type ipv4_addr . inet_proto . inet_service . mark : ipv4_addr . inet_service
	}
	map port-endpoints {
		type inet_proto . inet_service . mark : ipv4_addr . inet_service
	}
	map port-local-endpoints {
		type inet_proto . inet_service . mark : ipv4_addr . inet_service
	}
	set cluster-ips {
		type ipv4_addr
	}
	set hairpins {
		type ipv4_addr . ipv4_addr
	}
	set remote {
		type ipv4_addr
	}
`
	if frame != want {
		t.Errorf("the sets:\n%s\nwant\n%s", frame, want)
	}
	for _, chain := range []string{
		`	chain prerouting {
		type nat hook prerouting priority -100; policy accept;
		ip daddr . meta l4proto . th dport vmap @services
		fib daddr type local ip daddr != 127.0.0.0/8 meta l4proto . th dport vmap @node-ports
		ip daddr @cluster-ips meta l4proto tcp reject with tcp reset
		ip daddr @cluster-ips reject
	}
`, `	chain output {
		type nat hook output priority -100; policy accept;
		ip daddr . meta l4proto . th dport vmap @services
		fib daddr type local ip daddr != 127.0.0.0/8 meta l4proto . th dport vmap @node-ports
		ip daddr @cluster-ips meta l4proto tcp reject with tcp reset
		ip daddr @cluster-ips reject
	}
`, `	chain postrouting {
		type nat hook postrouting priority 100; policy accept;
		ip saddr . ip daddr @hairpins masquerade
		ct status dnat iifname != "mkab12*" oifname != "mkab12*" ip daddr @remote masquerade
	}
`, `	chain svc-default/web/tcp/p80 {
		dnat ip to ip daddr . meta l4proto . th dport . numgen inc mod 6 map @endpoints
		meta l4proto tcp reject with tcp reset
	}
`, `	chain port-svc-default/none/udp/p53-udp {
		dnat ip to meta l4proto . th dport . numgen inc mod 6 map @port-endpoints
		reject
	}
`, `	chain svc-default/sticky/tcp/p80 {
		ip saddr @clients-default/sticky/tcp/p80/10.244.0.5/8080 goto endpoint-default/sticky/tcp/p80/10.244.0.5/8080
		ip saddr @clients-default/sticky/tcp/p80/10.244.1.5/8080 goto endpoint-default/sticky/tcp/p80/10.244.1.5/8080
		numgen inc mod 2 0 goto endpoint-default/sticky/tcp/p80/10.244.0.5/8080
		goto endpoint-default/sticky/tcp/p80/10.244.1.5/8080
	}
`, `	chain endpoint-default/sticky/tcp/p80/10.244.1.5/8080 {
		update @clients-default/sticky/tcp/p80/10.244.1.5/8080 { ip saddr timeout 3h }
		dnat to 10.244.1.5:8080
	}
`, `	chain guard-default/local/tcp/p80 {
		ip saddr 203.0.113.0/24 goto outside-default/local/tcp/p80
		drop
	}
`, `	chain outside-default/local/tcp/p80 {
		iifname "mkab12*" goto svc-default/local/tcp/p80
		fib saddr type local goto svc-default/local/tcp/p80
		goto local-default/local/tcp/p80
	}
`, `	chain local-default/local/tcp/p80 {
		dnat ip to ip daddr . meta l4proto . th dport . numgen inc mod 6 map @local-endpoints
		drop
	}
`, `	chain port-svc-default/local/tcp/p80 {
		dnat ip to meta l4proto . th dport . numgen inc mod 6 map @port-endpoints
		meta l4proto tcp reject with tcp reset
	}
`} {
		if !strings.Contains(got, chain) {
			t.Errorf("no\n%s\nin\n%s", chain, got)
		}
	}
	for set, n := range map[string]int{services: 6, nodePorts: 2, endpoints: 18, portEndpoints: 6, clusterIPs: 4, hairpins: 1, remote: 1} {
		if elements[set] != n {
			t.Errorf("%s has %d elements, want %d", set, elements[set], n)
		}
	}
}

// Virtual packets through the rules: what real ones do in TestConnections and TestPolicies, here also by SCTP and with
// everything that a sender may do.
func TestPacketsThroughTheRules(t *testing.T) {
	s := testState()
	web := service("web", "10.96.0.1", port(80, 30080), port(53, 30053, corev1.ProtocolUDP), port(99, 30099, corev1.ProtocolSCTP), external("198.18.0.9"))
	s.add(web, "10.244.0.5@", "10.244.1.5")
	s.add(service("none", "10.96.0.2", port(80, 30081), port(99, 0, corev1.ProtocolSCTP)))
	s.add(service("local", "10.96.0.3", port(80, 30082), local, balanced("192.0.2.1")), "10.244.0.5@", "10.244.1.5")
	s.add(service("dark", "10.96.0.4", port(80, 30083), local, internalLocal), "10.244.1.5")
	s.add(service("sticky", "10.96.0.5", port(80, 30084), sticky(60)), "10.244.0.5@", "10.244.1.5")
	host := netip.MustParseAddr("192.0.2.1")
	w := nft.NewWalker(s.table(), func(a netip.Addr) bool { return a == host || a.IsLoopback() })
	for _, row := range []struct {
		name, from, in string
		protocol       byte
		to             string
		want           string // the outcome, or the targets of four packets and M where they are masqueraded
	}{
		{"a pod", "10.244.0.9", "mkab12x", unix.IPPROTO_TCP, "10.96.0.1:80", "10.244.0.5:8080 10.244.1.5:8080 10.244.0.5:8080 10.244.1.5:8080"},
		{"by UDP", "10.244.0.9", "mkab12x", unix.IPPROTO_UDP, "10.96.0.1:53", "10.244.0.5:8053 10.244.1.5:8053 10.244.0.5:8053 10.244.1.5:8053"},
		{"by SCTP", "10.244.0.9", "mkab12x", unix.IPPROTO_SCTP, "10.96.0.1:99", "10.244.0.5:8099 10.244.1.5:8099 10.244.0.5:8099 10.244.1.5:8099"},
		{"itself", "10.244.0.5", "mkab12y", unix.IPPROTO_TCP, "10.96.0.1:80", "10.244.0.5:8080M 10.244.1.5:8080 10.244.0.5:8080M 10.244.1.5:8080"},
		{"outside", "203.0.113.9", "eth0", unix.IPPROTO_TCP, "192.0.2.1:30080", "10.244.0.5:8080 10.244.1.5:8080M 10.244.0.5:8080 10.244.1.5:8080M"},
		{"outside, external", "203.0.113.9", "eth0", unix.IPPROTO_TCP, "198.18.0.9:80", "10.244.0.5:8080 10.244.1.5:8080M 10.244.0.5:8080 10.244.1.5:8080M"},
		{"outside, SCTP", "203.0.113.9", "eth0", unix.IPPROTO_SCTP, "192.0.2.1:30099", "10.244.0.5:8099 10.244.1.5:8099M 10.244.0.5:8099 10.244.1.5:8099M"},
		{"the host", "192.0.2.1", "", unix.IPPROTO_TCP, "10.96.0.1:80", "10.244.0.5:8080 10.244.1.5:8080M 10.244.0.5:8080 10.244.1.5:8080M"},
		{"another protocol's port", "10.244.0.9", "mkab12x", unix.IPPROTO_UDP, "10.96.0.1:80", string(nft.Unreachable)},
		{"no such port", "10.244.0.9", "mkab12x", unix.IPPROTO_TCP, "10.96.0.1:81", string(nft.Reset)},
		{"ping", "10.244.0.9", "mkab12x", unix.IPPROTO_ICMP, "10.96.0.1:80", string(nft.Unreachable)},
		{"no such port of an external address", "203.0.113.9", "eth0", unix.IPPROTO_TCP, "198.18.0.9:81", string(nft.Passes)},
		{"another port of the node", "203.0.113.9", "eth0", unix.IPPROTO_TCP, "192.0.2.1:22", string(nft.Passes)},
		{"a node port's number elsewhere", "10.244.0.9", "mkab12x", unix.IPPROTO_TCP, "192.0.2.2:30080", string(nft.Passes)},
		{"a node port on loopback", "127.0.0.1", "", unix.IPPROTO_TCP, "127.0.0.1:30080", string(nft.Passes)},
		{"none, TCP", "10.244.0.9", "mkab12x", unix.IPPROTO_TCP, "10.96.0.2:80", string(nft.Reset)},
		{"none, SCTP", "10.244.0.9", "mkab12x", unix.IPPROTO_SCTP, "10.96.0.2:99", string(nft.Unreachable)},
		{"none, node port", "203.0.113.9", "eth0", unix.IPPROTO_TCP, "192.0.2.1:30081", string(nft.Reset)},
		{"local, outside", "203.0.113.9", "eth0", unix.IPPROTO_TCP, "192.0.2.1:30082", "10.244.0.5:8080 10.244.0.5:8080 10.244.0.5:8080 10.244.0.5:8080"},
		{"local, a balancer on the node's address", "203.0.113.9", "eth0", unix.IPPROTO_TCP, "192.0.2.1:80", "10.244.0.5:8080 10.244.0.5:8080 10.244.0.5:8080 10.244.0.5:8080"},
		{"local, a pod", "10.244.0.9", "mkab12x", unix.IPPROTO_TCP, "192.0.2.1:30082", "10.244.0.5:8080 10.244.1.5:8080 10.244.0.5:8080 10.244.1.5:8080"},
		{"local and none here, outside", "203.0.113.9", "eth0", unix.IPPROTO_TCP, "192.0.2.1:30083", string(nft.Dropped)},
		{"local and none here, a pod", "10.244.0.9", "mkab12x", unix.IPPROTO_TCP, "10.96.0.4:80", string(nft.Dropped)},
		{"sticky", "10.244.0.9", "mkab12x", unix.IPPROTO_TCP, "10.96.0.5:80", "10.244.0.5:8080 10.244.0.5:8080 10.244.0.5:8080 10.244.0.5:8080"},
		{"sticky, the next", "10.244.0.8", "mkab12x", unix.IPPROTO_TCP, "192.0.2.1:30084", "10.244.1.5:8080 10.244.1.5:8080 10.244.1.5:8080 10.244.1.5:8080"},
		{"elsewhere", "10.244.0.9", "mkab12x", unix.IPPROTO_TCP, "198.51.100.1:80", string(nft.Passes)},
	} {
		var got []string
		for range 4 {
			p := nft.Packet{Protocol: row.protocol, From: netip.AddrPortFrom(netip.MustParseAddr(row.from), 4711), To: netip.MustParseAddrPort(row.to), In: row.in}
			hook := nft.Prerouting
			if row.in == "" {
				hook = nft.Output
			}
			p, outcome, err := w.Send(hook, p)
			if err != nil {
				t.Fatalf("%s: %v", row.name, err)
			}
			if outcome != nft.Redirected {
				got = []string{string(outcome)}
				break
			}
			to := p.To.String()
			if p.Out = "eth0"; strings.HasPrefix(to, "10.244.0.") {
				p.Out = "mkab12z"
			}
			if _, outcome, err = w.Send(nft.Postrouting, p); err != nil {
				t.Fatalf("%s: %v", row.name, err)
			} else if outcome == nft.Masqueraded {
				to += "M"
			}
			got = append(got, to)
		}
		if text := strings.Join(got, " "); text != row.want {
			t.Errorf("%s: %s, want %s; the way: %v", row.name, text, row.want, w.Way)
		}
	}
}

// A change of one endpoint touches what it has to, however many Services there are, and leaves the others their places.
func TestEditsAreSmall(t *testing.T) {
	s := testState()
	var list []string
	for i := range 100 {
		list = append(list, fmt.Sprintf("10.244.0.%d@", i+1))
	}
	web := service("web", "10.96.0.1")
	s.add(web, list...)
	for i := range 50 {
		s.add(service(fmt.Sprint("s", i), fmt.Sprintf("10.96.1.%d", i)), "10.244.0.1@")
	}
	for _, c := range []struct {
		name  string
		list  []string
		edits string // sets, removed, chains, added, gone, sets gone
	}{
		{"nothing", list, "0 0 0 0 0 0"},
		{"one goes from the middle", append(list[:40:40], list[41:]...), "0 3 1 1 0 0"}, // its hairpin and place; the last one takes it
		{"another takes its place", append(list[:40:40], append([]string{"10.244.7.7"}, list[41:]...)...), "0 0 1 2 0 0"},
		{"one is replaced", append(list[:40:40], append([]string{"10.244.7.8"}, list[41:]...)...), "0 2 0 2 0 0"},
		{"all go", nil, "0 199 1 0 0 0"}, // the first has its hairpin by other Services, too
	} {
		e := s.add(web, c.list...)
		if got := fmt.Sprint(len(e.Sets), len(e.Removed), len(e.Chains), len(e.Added), len(e.Gone), len(e.GoneSets)); got != c.edits {
			t.Errorf("%s: %s, want %s", c.name, got, c.edits)
		}
	}
	few := service("few", "10.96.0.2")
	s.add(few)
	for n := 1; n <= 3; n++ {
		if e := s.add(few, list[:n]...); len(e.Chains) != 0 || len(e.Added) == 0 {
			t.Errorf("with %d endpoints the rules are others: %+v", n, e)
		}
	}
	e := s.change(map[types.NamespacedName]*entry{nameOf(web, nil): nil})
	if len(e.Gone) != 1 || len(e.Removed) != 2 {
		t.Errorf("the service goes: %+v", e)
	}
}

// Of two Services that want the same address and port the older one has it, and the other when that goes.
func TestTheOlderServiceHasTheAddress(t *testing.T) {
	s := testState()
	at := func(minute int) func(*corev1.Service) {
		return func(svc *corev1.Service) {
			svc.CreationTimestamp.Time = time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC)
		}
	}
	young, old := service("young", "10.96.0.1", external("198.18.0.1"), at(2)), service("old", "10.96.0.2", external("198.18.0.1"), at(1))
	target := func() string {
		t.Helper()
		w := nft.NewWalker(s.table(), func(netip.Addr) bool { return false })
		p, _, err := w.Send(nft.Prerouting, nft.Packet{Protocol: unix.IPPROTO_TCP, From: netip.MustParseAddrPort("203.0.113.1:1"), To: netip.MustParseAddrPort("198.18.0.1:80"), In: "eth0"})
		if err != nil {
			t.Fatal(err)
		}
		return p.To.String()
	}
	fake := nft.NewFake()
	if _, err := fake.Sync(s.table()); err != nil {
		t.Fatal(err)
	}
	step := func(what string, e nft.Edit, want string) {
		t.Helper()
		if err := fake.Edit(Tables+"ab12", e); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if changed, err := fake.Sync(s.table()); err != nil || changed {
			t.Errorf("%s: the edit was not all: %v, %v", what, changed, err)
		}
		if got := target(); got != want {
			t.Errorf("%s: to %s, want %s", what, got, want)
		}
	}
	step("one", s.add(young, "10.244.0.1@"), "10.244.0.1:8080")
	step("the older one", s.add(old, "10.244.0.2@"), "10.244.0.2:8080")
	step("the younger one changes", s.add(young, "10.244.0.3@"), "10.244.0.2:8080")
	step("the older one goes", s.change(map[types.NamespacedName]*entry{nameOf(old, nil): nil}), "10.244.0.3:8080")
}
