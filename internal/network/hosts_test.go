package network_test

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"minik8s/internal/machine"
	"minik8s/internal/network/hosttest"
	"minik8s/internal/network/overlay"
)

// lab is several hosts with a pod each, which serve port 80 as their hosts do.
type lab struct {
	t     *testing.T
	hosts []*labHost
}

type labHost struct {
	*hosttest.Machine
	t    *testing.T
	name string
	cfg  hosttest.Config
	pod  netip.Addr
}

// newLab makes hosts with these addresses: those of a subnet are on one bridge, and the test's own namespace routes
// between bridges.
func newLab(t *testing.T, direct bool, addrs ...string) *lab {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("hosts need root")
	}
	for _, tool := range []string{"ip", "nft"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the test plays an administrator with %s, which is not installed: make testtools", tool)
		}
	}
	l := &lab{t: t}
	bridges := map[netip.Prefix]string{}
	for i, a := range addrs {
		addr := netip.MustParsePrefix(a)
		router := addr.Masked().Addr().Next()
		bridge, have := bridges[addr.Masked()]
		if !have {
			bridge = fmt.Sprintf("lab%d", len(bridges))
			bridges[addr.Masked()] = bridge
			l.check(machine.Bridge(bridge, netip.PrefixFrom(router, addr.Bits())))
			t.Cleanup(func() { l.check(hosttest.Unplug(bridge)) })
			if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.check(os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("0"), 0)) })
		}
		m, err := hosttest.Start(bridge, addr, router)
		l.check(err)
		t.Cleanup(func() { l.check(m.Close()) })
		h := &labHost{Machine: m, t: t, name: fmt.Sprintf("node-%d", i+1), cfg: hosttest.Config{
			PodCIDR: netip.MustParsePrefix(fmt.Sprintf("10.244.%d.0/24", i+1)), NodeIP: addr.Addr(), Direct: direct,
			StateFile: filepath.Join(t.TempDir(), "network.json")}}
		l.hosts = append(l.hosts, h)
		// As where a distribution is strict.
		h.sh("echo 1 > /proc/sys/net/ipv4/conf/all/rp_filter")
		l.check(m.Do("Up", h.cfg))
		l.check(m.Ask("Pod", "pod", &h.pod))
		l.check(m.Do("Serve", hosttest.Where{Pod: "pod", Addr: ":80"}))
		l.check(m.Do("Serve", hosttest.Where{Addr: ":80"}))
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, h := range l.hosts {
				t.Logf("%s logged:\n%s%s", h.name, h.logged(), h.sh("ip -d route; ip -s link; nft list ruleset"))
			}
		}
	})
	return l
}

func (l *lab) check(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// join makes every host know all others.
func (l *lab) join() {
	l.t.Helper()
	for _, h := range l.hosts {
		l.check(h.Do("SetPeers", l.peersOf(h)))
	}
}

func (l *lab) peersOf(of *labHost) (out []overlay.Peer) {
	for _, h := range l.hosts {
		if h != of {
			out = append(out, overlay.Peer{Node: h.name, Address: h.cfg.NodeIP, Ranges: []netip.Prefix{h.cfg.PodCIDR}})
		}
	}
	return out
}

func (h *labHost) sh(line string) (out string) {
	h.t.Helper()
	if err := h.Ask("Sh", line, &out); err != nil {
		h.t.Error(err)
	}
	return out
}

func (h *labHost) logged() (text string) {
	if err := h.Ask("Log", 0, &text); err != nil {
		return err.Error()
	}
	return text
}

// says is what the server at an address answers to a pod, or to the host if from is empty.
func (h *labHost) says(method, from string, to netip.Addr, size int) string {
	text := ""
	w := hosttest.Where{Pod: from, Addr: to.String() + ":80", Size: size}
	if err := h.Ask(method, w, &text); err != nil {
		return err.Error()
	}
	return text
}

// unanswered reports whether a server does not answer, for a moment.
func (h *labHost) unanswered(method, from string, to netip.Addr) bool {
	return h.Ask(method, hosttest.Where{Pod: from, Addr: to.String() + ":80", Size: 1, For: 200 * time.Millisecond}, new(string)) != nil
}

// reaches checks TCP, UDP and ICMP from a pod to another, with the pod's own address as their source.
func (h *labHost) reaches(to *labHost) {
	h.t.Helper()
	for _, method := range []string{"TCP", "UDP"} {
		if got, want := h.says(method, "pod", to.pod, 1000), h.pod.String()+" 1000"; got != want {
			h.t.Errorf("%s from %s's pod to %s's: %q, want %q", method, h.name, to.name, got, want)
		}
	}
	if err := h.Do("Ping", hosttest.Where{Pod: "pod", Addr: to.pod.String()}); err != nil {
		h.t.Errorf("ping from %s's pod to %s's: %v", h.name, to.name, err)
	}
}

func (h *labHost) eventuallyReaches(to *labHost) {
	h.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	want := h.pod.String() + " 1"
	for {
		got := ""
		err := h.Ask("UDP", hosttest.Where{Pod: "pod", Addr: to.pod.String() + ":80", Size: 1, For: 50 * time.Millisecond}, &got)
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("not in time: from %s's pod to %s's: %q, %v", h.name, to.name, got, err)
		}
	}
}

// Pods, hosts and everything between them reach each other, over one link and over a router, by a tunnel and without.
func TestPodsOfAllHosts(t *testing.T) {
	for _, c := range []struct {
		name   string
		direct bool
		addrs  []string
	}{
		{"one link by VXLAN", false, []string{"172.30.1.11/24", "172.30.1.12/24", "172.30.1.13/24"}},
		{"one link directly", true, []string{"172.30.1.11/24", "172.30.1.12/24", "172.30.1.13/24"}},
		{"two subnets by VXLAN", false, []string{"172.30.1.11/24", "172.30.2.12/24"}},
		{"two subnets, directly where possible", true, []string{"172.30.1.11/24", "172.30.1.12/24", "172.30.2.13/24"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, c.direct, c.addrs...)
			l.join()
			for _, a := range l.hosts {
				for _, b := range l.hosts {
					if a == b {
						continue
					}
					a.reaches(b)
					if got := a.says("TCP", "", b.pod, 10); !strings.HasSuffix(got, " 10") {
						t.Errorf("from host %s to %s's pod: %q", a.name, b.name, got)
					}
					// A host that is not told otherwise sees the other host, as it sees everybody outside.
					if got, want := a.says("TCP", "pod", b.cfg.NodeIP, 10), a.cfg.NodeIP.String()+" 10"; got != want {
						t.Errorf("from %s's pod to host %s: %q, want %q", a.name, b.name, got, want)
					}
					// More than any packet: the kernel fragments it, and says how large a whole one may be.
					if got, want := a.says("UDP", "pod", b.pod, 9000), a.pod.String()+" 9000"; got != want {
						t.Errorf("a large datagram from %s's pod to %s's: %q, want %q", a.name, b.name, got, want)
					}
					if got, want := a.says("TCP", "pod", b.pod, 1<<20), fmt.Sprintf("%s %d", a.pod, 1<<20); got != want {
						t.Errorf("a megabyte from %s's pod to %s's: %q, want %q", a.name, b.name, got, want)
					}
					whole := hosttest.Where{Pod: "pod", Addr: b.pod.String(), Size: 1450 - 28, Whole: true}
					if a.cfg.Direct && a.cfg.NodeIP.As4()[2] == b.cfg.NodeIP.As4()[2] {
						whole.Size = 1500 - 28
					}
					if err := a.Do("Ping", whole); err != nil {
						t.Errorf("a full packet from %s's pod to %s's: %v", a.name, b.name, err)
					}
				}
			}
		})
	}
}

// state is what there is on a host for its peers.
func (h *labHost) state() string {
	return h.sh("ip route show proto 109 type unicast | sort; ip neigh show nud permanent | grep vxlan | sort; ip -o addr show type vxlan | sed 's/^[0-9]*//'; ip -o link show type vxlan | sed 's/^[0-9]*//'; nft list tables; for s in endpoints tunnel-ports remote-ranges; do nft list set ip minik8s-pods-a511 $s; done 2>&1; true")
}

func (h *labHost) eventually(what string, check func() bool) {
	h.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !check(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			h.t.Fatalf("not in time: %s", what)
		}
	}
}

var oneLink = []string{"172.30.1.11/24", "172.30.1.12/24", "172.30.1.13/24"}

// Peers come, go and change their addresses; a node alone has nothing for them.
func TestPeersComeAndGo(t *testing.T) {
	l := newLab(t, false, oneLink...)
	one, two, three := l.hosts[0], l.hosts[1], l.hosts[2]
	alone := func() bool { return one.sh("ip link show type vxlan; ip route show proto 109 type unicast") == "" }
	if !alone() {
		t.Error("a node alone has a tunnel")
	}
	// A flow from before the others are known is not masqueraded for ever.
	if !one.unanswered("UDP", "pod", two.pod) {
		t.Error("a pod of a node that is not known answers")
	}
	l.join()
	one.reaches(two)
	three.reaches(one)

	two.sh("ip addr flush dev eth0; ip addr add 172.30.1.22/24 dev eth0; ip route add default via 172.30.1.1")
	two.cfg.NodeIP = netip.MustParseAddr("172.30.1.22")
	l.check(one.Do("SetPeers", l.peersOf(one)))
	two.eventuallyReaches(one)
	one.reaches(two)

	l.check(one.Do("SetPeers", l.peersOf(one)[1:]))
	if !one.unanswered("UDP", "pod", two.pod) {
		t.Error("a pod of a node that has left answers")
	}
	one.reaches(three)
	l.check(one.Do("SetPeers", []overlay.Peer{}))
	if !alone() {
		t.Error("left behind:", one.state())
	}
}

// What somebody else takes away for peers comes back.
func TestWaysToPeersComeBack(t *testing.T) {
	l := newLab(t, false, oneLink...)
	l.join()
	one, two := l.hosts[0], l.hosts[1]
	before := one.state()
	const vx = "mka511-vxlan"
	for _, harm := range []string{
		"ip link del " + vx, "ip link set " + vx + " down", "ip addr flush dev " + vx, "ip route flush proto 109 type unicast", "ip route del 10.244.2.0/24",
		"nft flush set ip minik8s-pods-a511 endpoints", "nft flush set ip minik8s-pods-a511 remote-ranges",
		"nft delete element ip minik8s-pods-a511 tunnel-ports { 8472 }", "nft flush ruleset", "ip link set eth0 down; ip link set eth0 up",
	} {
		one.sh(harm)
		one.eventually("whole again after "+harm, func() bool { return one.state() == before })
	}
	one.sh("ip route replace default via 172.30.1.1") // it went with eth0
	one.eventuallyReaches(two)
	two.reaches(one)
}

// A restart of the daemon interrupts nothing, also while it does not know yet which peers there are.
func TestRestartInterruptsNothing(t *testing.T) {
	for _, direct := range []bool{false, true} {
		t.Run(fmt.Sprint("direct=", direct), func(t *testing.T) { restart(t, direct) })
	}
}

func restart(t *testing.T, direct bool) {
	l := newLab(t, direct, oneLink...)
	l.join()
	one, two, three := l.hosts[0], l.hosts[1], l.hosts[2]
	one.reaches(two)
	before := one.state()
	var lost [2]int
	done := make(chan error, 2)
	go func() {
		done <- one.Ask("Stream", hosttest.Where{Pod: "pod", Addr: two.pod.String() + ":80", For: time.Second}, &lost[0])
	}()
	go func() {
		done <- two.Ask("Stream", hosttest.Where{Pod: "pod", Addr: one.pod.String() + ":80", For: time.Second}, &lost[1])
	}()
	l.check(one.Do("Down", 0))
	l.check(one.Do("Up", one.cfg))
	if got := one.state(); got != before {
		t.Errorf("after a restart\n%s\nbefore\n%s", got, before)
	}
	l.check(one.Do("SetPeers", l.peersOf(one)))
	l.check(<-done)
	l.check(<-done)
	if lost != [2]int{} {
		t.Errorf("lost packets: %v", lost)
	}
	if got := one.state(); got != before {
		t.Errorf("with the peers known again\n%s\nbefore\n%s", got, before)
	}
	// One that left meanwhile is forgotten as soon as the peers are known.
	l.check(one.Do("Down", 0))
	l.check(one.Do("Up", one.cfg))
	one.reaches(three)
	l.check(one.Do("SetPeers", l.peersOf(one)[:1]))
	if got := one.sh("ip route show proto 109 type unicast"); strings.Contains(got, "10.244.3.") || !strings.Contains(got, "10.244.2.") {
		t.Errorf("routes: %s", got)
	}
	// And a daemon that knows neither a peer nor its own range gives everything back.
	one.cfg.PodCIDR = netip.Prefix{}
	l.check(one.Do("Clean", one.cfg))
	if got := one.sh("ip route show proto 109; ip link show type vxlan; nft list ruleset"); got != "" {
		t.Errorf("left behind: %s", got)
	}
}

// Who is not a peer cannot speak to pods by the tunnel, whatever address it pretends to have.
func TestStrangersAreNotHeard(t *testing.T) {
	l := newLab(t, false, oneLink...)
	one, two, stranger := l.hosts[0], l.hosts[1], l.hosts[2]
	received := func() (n int) {
		l.check(one.Ask("Datagrams", "pod", &n))
		return n
	}
	// The stranger has the very range of a peer.
	l.check(stranger.Do("Clean", stranger.cfg))
	stranger.sh("ip link del $(ip -o link | grep -o 'mka511[0-9a-f]*' | head -1)")
	stranger.cfg.PodCIDR = two.cfg.PodCIDR
	l.check(stranger.Do("Up", stranger.cfg))
	l.check(stranger.Ask("Pod", "pod", &stranger.pod))
	l.check(stranger.Do("SetPeers", l.peersOf(stranger)[:1]))
	l.check(one.Do("SetPeers", l.peersOf(one)[:1]))
	l.check(two.Do("SetPeers", l.peersOf(two)[:1]))
	before := received()
	stranger.unanswered("UDP", "pod", one.pod)
	if got := received(); got != before {
		t.Errorf("%d datagrams of a stranger came through", got-before)
	}
	two.reaches(one)
	if received() == before {
		t.Error("what a peer sends is not counted")
	}
	// And a peer cannot pretend to be the host's neighbour.
	l.check(two.Do("Down", 0))
	two.sh("nft flush ruleset")
	before = received()
	two.sh("ip addr add 172.30.1.99/32 dev lo; ip route replace 10.244.1.0/24 encap ip id 1 dst 172.30.1.11 via 172.30.1.11 dev mka511-vxlan onlink src 172.30.1.99")
	two.unanswered("UDP", "", one.pod)
	if got := received(); got != before {
		t.Errorf("%d datagrams with a source outside the peers' ranges came through", got-before)
	}
}

// Where the host drops whatever it does not know, pods and hosts of all nodes reach each other all the same.
func TestPeersThroughFilters(t *testing.T) {
	for _, direct := range []bool{false, true} {
		t.Run(fmt.Sprint("direct=", direct), func(t *testing.T) { throughFilters(t, direct) })
	}
}

func throughFilters(t *testing.T, direct bool) {
	l := newLab(t, direct, oneLink[:2]...)
	one, two := l.hosts[0], l.hosts[1]
	for _, h := range l.hosts {
		h.sh(`nft -f - <<EOF
table inet theirs {
	chain input { type filter hook input priority 0; policy drop; iifname lo accept; }
	chain forward { type filter hook forward priority 0; policy drop; }
	chain output { type filter hook output priority 0; policy drop; }
}
EOF`)
	}
	l.join()
	one.eventuallyReaches(two)
	two.eventuallyReaches(one)
	one.reaches(two)
	for _, h := range l.hosts {
		for _, to := range l.hosts {
			if got := h.says("TCP", "", to.pod, 10); !strings.HasSuffix(got, " 10") {
				t.Errorf("from host %s to %s's pod: %q", h.name, to.name, got)
			}
		}
	}
	// What is not pods' traffic stays the filter's business.
	if !one.unanswered("TCP", "", two.cfg.NodeIP) {
		t.Error("the host's own port is open to others")
	}
	l.check(one.Do("SetPeers", []overlay.Peer{}))
	if got := one.sh("nft list table inet theirs"); strings.Contains(got, "10.244.2.") || strings.Contains(got, "8472") {
		t.Errorf("left behind: %s", got)
	}
}

// A host without pods reaches those of the others, also through filters, and nothing is changed that only pods need.
func TestHostWithoutPods(t *testing.T) {
	l := newLab(t, false, oneLink[:2]...)
	one, bare := l.hosts[0], l.hosts[1]
	l.check(bare.Do("Clean", bare.cfg))
	bare.sh("ip link del $(ip -o link | grep -o 'mka511[0-9a-f]*' | head -1)")
	bare.sh(`nft -f - <<EOF
table inet theirs {
	chain input { type filter hook input priority 0; policy drop; iifname lo accept; }
	chain forward { type filter hook forward priority 0; policy drop; }
	chain output { type filter hook output priority 0; policy drop; }
}
EOF`)
	reaches := func(when string) {
		t.Helper()
		if got := bare.says("TCP", "", one.pod, 10); !strings.HasSuffix(got, " 10") {
			t.Errorf("%s: %q", when, got)
		}
		if got := bare.sh("nft list chain inet theirs forward | grep accept; ip -o addr show dev lo"); strings.Contains(got, "10.244.") || strings.Contains(got, "169.254.") {
			t.Errorf("%s, of the host is changed what only pods need: %s", when, got)
		}
	}
	bare.cfg.NoPods = true
	l.check(bare.Do("Up", bare.cfg))
	l.join()
	reaches("at first")
	l.check(bare.Do("Down", 0))
	l.check(bare.Do("Up", bare.cfg))
	reaches("after a restart")
	bare.sh("ip route flush proto 109")
	l.check(bare.Do("SetPeers", l.peersOf(bare)))
	reaches("after its routes were taken away")
	l.check(bare.Do("Clean", bare.cfg))
	if got := bare.sh("ip route show proto 109; ip link show type vxlan; nft list ruleset"); strings.Contains(got, "10.244.") || strings.Contains(got, "vxlan") {
		t.Errorf("left behind: %s", got)
	}
}

// A port that another program has for VXLAN is named, and neither it nor this node's own pods are disturbed.
func TestPortInUse(t *testing.T) {
	l := newLab(t, false, oneLink[:2]...)
	one, two := l.hosts[0], l.hosts[1]
	one.sh("ip link add theirs type vxlan id 7 local 172.30.1.11 dstport 8472; ip link set theirs up")
	err := one.Do("SetPeers", l.peersOf(one))
	if err == nil || !strings.Contains(err.Error(), "UDP port 8472") || !strings.Contains(err.Error(), "vxlan-port") {
		t.Fatal(err)
	}
	if got := one.sh("nft list set ip minik8s-pods-a511 tunnel-ports"); strings.Contains(got, "8472") {
		t.Error("the other program's packets are dropped:", got)
	}
	one.sh("ip link del theirs")
	l.check(two.Do("SetPeers", l.peersOf(two)))
	one.eventuallyReaches(two)
}
