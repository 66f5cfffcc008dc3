package overlay

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func node(name, addr string, ranges ...string) Peer {
	p := Peer{Node: name}
	p.Address, _ = netip.ParseAddr(addr) //nolint:errcheck // a bad one is what a test wants
	for _, r := range ranges {
		p.Ranges = append(p.Ranges, netip.MustParsePrefix(r))
	}
	return p
}

func (a needs) text() string {
	var lines []string
	for _, r := range a.ranges() {
		w := a.routes[r]
		by := "tunnel"
		if w.link != 0 {
			by = fmt.Sprint("link ", w.link)
		}
		lines = append(lines, fmt.Sprintf("%s by %s to %s", r, by, w.peer))
	}
	if a.tunnel {
		lines = append(lines, "tunnel")
	}
	return strings.Join(lines, "; ")
}

// What a wrong Node cannot do to this host, nor to other nodes.
func TestPlan(t *testing.T) {
	s := surroundings{own: netip.MustParsePrefix("10.244.1.0/24"), nodeIP: netip.MustParseAddr("192.0.2.1"), port: 8472,
		addrs: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("10.99.0.1")},
		taken: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("10.99.0.0/16"), netip.MustParsePrefix("203.0.113.254/32")},
		hops: map[netip.Addr]firstHop{
			netip.MustParseAddr("192.0.2.2"): {link: 2, onLink: true, mtu: 1500}, netip.MustParseAddr("198.51.100.3"): {link: 2, mtu: 9000}}}
	good := node("two", "192.0.2.2", "10.244.2.0/24")
	for _, c := range []struct {
		name    string
		change  func(*surroundings)
		peers   []Peer
		want    string
		refused string // what every refusal contains, in their order, separated by |
	}{
		{"nobody", nil, nil, "", ""},
		{"one", nil, []Peer{good}, "10.244.2.0/24 by tunnel to 192.0.2.2; tunnel", ""},
		{"directly where a router is not needed", func(s *surroundings) { s.direct = true }, []Peer{good, node("three", "198.51.100.3", "10.244.3.0/24")},
			"10.244.2.0/24 by link 2 to 192.0.2.2; 10.244.3.0/24 by tunnel to 198.51.100.3; tunnel", ""},
		{"no tunnel can be made", func(s *surroundings) { s.direct, s.noTunnel = true, true }, []Peer{good, node("three", "198.51.100.3", "10.244.3.0/24")},
			"10.244.2.0/24 by link 2 to 192.0.2.2", ""},
		{"the own range is not known yet", func(s *surroundings) { s.own = netip.Prefix{} }, []Peer{good}, "", ""},
		{"no range yet", nil, []Peer{node("two", "192.0.2.2")}, "", ""},
		{"an unmasked range", nil, []Peer{node("two", "192.0.2.2", "10.244.2.7/24")}, "10.244.2.0/24 by tunnel to 192.0.2.2; tunnel", ""},
		{"no address", nil, []Peer{node("bad", "", "10.244.3.0/24"), good}, "10.244.2.0/24 by tunnel to 192.0.2.2; tunnel", "is not an IPv4 address"},
		{"addresses of this host", nil, []Peer{node("bad", "192.0.2.1", "10.244.3.0/24"), node("worse", "10.99.0.1", "10.244.4.0/24")}, "", "node bad is this host's own|node worse is this host's own"},
		{"loopback", nil, []Peer{node("bad", "127.0.0.1", "10.244.3.0/24"), node("worse", "224.0.0.1", "10.244.4.0/24")}, "", "is none that a host can have|is none that a host can have"},
		{"an address among this node's pods", nil, []Peer{node("bad", "10.244.1.9", "10.244.3.0/24")}, "", "in the range of this node's pods"},
		{"an address among another's pods", nil, []Peer{good, node("bad", "10.244.2.9", "10.244.3.0/24")}, "10.244.2.0/24 by tunnel to 192.0.2.2; tunnel", "in the range of node two's pods"},
		{"this node's range", nil, []Peer{node("bad", "192.0.2.9", "10.244.1.0/25"), node("worse", "192.0.2.8", "10.244.0.0/16")}, "", "overlaps that of this node|overlaps that of this node"},
		{"another's range", nil, []Peer{good, node("bad", "192.0.2.9", "10.244.2.128/25"), node("worse", "192.0.2.8", "10.244.2.0/23")}, "10.244.2.0/24 by tunnel to 192.0.2.2; tunnel",
			"overlaps that of node two|overlaps that of node two"},
		{"its own range twice", nil, []Peer{node("two", "192.0.2.2", "10.244.2.0/24", "10.244.2.0/24")}, "10.244.2.0/24 by tunnel to 192.0.2.2; tunnel", "overlaps that of node two"},
		{"another's address", nil, []Peer{node("three", "198.51.100.3", "10.244.3.0/24"), node("bad", "192.0.2.9", "198.51.100.0/24")}, "10.244.3.0/24 by tunnel to 198.51.100.3; tunnel",
			"contains the address of node three"},
		{"its own address", nil, []Peer{node("bad", "198.51.100.3", "198.51.100.0/24")}, "", "contains the address of node bad"},
		{"networks of this host", nil, []Peer{node("bad", "192.0.2.9", "192.0.2.128/25"), node("worse", "192.0.2.8", "10.96.0.0/12")}, "", "overlaps a network or address of this host|overlaps a network or address of this host"},
		{"the gateway", nil, []Peer{node("bad", "192.0.2.9", "203.0.113.0/24")}, "", "overlaps a network or address of this host, 203.0.113.254/32"},
		{"everything", nil, []Peer{node("bad", "192.0.2.9", "0.0.0.0/0", "0.0.0.0/1", "128.0.0.0/1")}, "", "too large|too large|too large"},
		{"ranges that nobody has", nil, []Peer{node("bad", "192.0.2.9", "169.254.1.0/24", "127.0.0.0/8", "239.0.0.0/8", "2001:db8::/64")}, "", "none that pods|none that pods|none that pods|not an IPv4 range"},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := s
			if c.change != nil {
				c.change(&now)
			}
			got, refused := plan(now, c.peers)
			if got.text() != c.want {
				t.Errorf("got  %s\nwant %s", got.text(), c.want)
			}
			var want []string
			if c.refused != "" {
				want = strings.Split(c.refused, "|")
			}
			if !slices.EqualFunc(refused, want, strings.Contains) {
				t.Errorf("refused %q, want %q", refused, want)
			}
		})
	}
	a, _ := plan(s, []Peer{good, node("three", "198.51.100.3", "10.244.3.0/24")})
	if got := a.routes[netip.MustParsePrefix("10.244.2.0/24")]; got.mtu != 1450 || got.source.String() != "10.244.1.1" || got.outer.String() != "192.0.2.1" {
		t.Errorf("%+v", got)
	}
	if got := a.routes[netip.MustParsePrefix("10.244.3.0/24")].mtu; got != 8950 {
		t.Errorf("over a larger link: %d", got)
	}
	if got := a.endpoints[netip.MustParseAddr("192.0.2.2")].String(); got != "0a:58:0a:f4:02:01" {
		t.Errorf("the other end: %s", got)
	}
}
