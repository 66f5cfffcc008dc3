package hostfilter

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"minik8s/internal/nft"
)

var podRange = netip.MustParsePrefix("10.244.0.0/24")

func TestLinksThatPodsTrafficPasses(t *testing.T) {
	from, to := nft.Accept{From: podRange}, nft.Accept{To: podRange}
	remote, wrapped := nft.Accept{From: netip.MustParsePrefix("10.244.2.0/24")}, nft.Accept{Protocol: "udp", Port: 8472}
	w := Traffic{Pods: podRange, Links: "mkab12", Exit: "eth0"}
	for _, c := range []struct {
		hook    nft.Hook
		traffic nft.Accept
		link    nft.Link
		want    bool
	}{
		{nft.Input, remote, nft.Link{Name: "mkab12-vxlan"}, true},
		{nft.Input, remote, nft.Link{Name: "eth0"}, false},
		{nft.Input, wrapped, nft.Link{Name: "eth0"}, true},
		{nft.Input, wrapped, nft.Link{Name: "mk", Prefix: true}, false},
		{nft.Input, wrapped, nft.Link{Name: "lo", Not: true}, true},
		{nft.Input, wrapped, nft.Link{Name: "eth0", Not: true}, false},
		{nft.Forward, to, nft.Link{Name: "eth0"}, true},
		{nft.Forward, from, nft.Link{Name: "eth0"}, false}, // addresses of pods that come from outside are forged
		{nft.Forward, from, nft.Link{Name: "eth0", Out: true}, true},
		{nft.Forward, to, nft.Link{Name: "eth0", Out: true}, false},
		{nft.Forward, to, nft.Link{Name: "eth", Prefix: true}, true},
		{nft.Forward, from, nft.Link{Name: "docker0"}, false},
		{nft.Forward, to, nft.Link{Name: "virbr0", Out: true}, false},
		{nft.Forward, from, nft.Link{Name: "mkab12", Prefix: true}, true},
		{nft.Forward, to, nft.Link{Name: "mk", Prefix: true, Out: true}, true},
		{nft.Forward, from, nft.Link{Name: "mkab1212345678"}, true},
		{nft.Forward, from, nft.Link{Name: "docker0", Not: true}, true},
		{nft.Forward, from, nft.Link{Name: "mk", Prefix: true, Not: true}, false},
		{nft.Input, from, nft.Link{Name: "eth0"}, false}, // what pods send comes in by their links
		{nft.Input, from, nft.Link{Name: "lo", Not: true}, true},
		{nft.Output, to, nft.Link{Name: "eth0", Out: true}, false},
		{nft.Output, to, nft.Link{Name: "mk", Prefix: true, Out: true}, true},
		{nft.Forward, from, nft.Link{}, true}, // a link that is not known any more
	} {
		if got := w.pass(c.hook, c.traffic, c.link); got != c.want {
			t.Errorf("%s %v %+v: %v", c.hook, c.traffic, c.link, got)
		}
	}
}

func TestMerged(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"10.0.0.0/24 10.0.1.0/24", "10.0.0.0/23"},
		{"10.0.1.0/24 10.0.2.0/24", "10.0.1.0/24 10.0.2.0/24"},
		{"10.0.3.0/24 10.0.2.0/24 10.0.0.0/24 10.0.1.0/24", "10.0.0.0/22"},
		{"10.0.0.0/23 10.0.1.0/24 10.0.2.0/23", "10.0.0.0/22"},
		{"10.0.0.0/24 10.0.1.0/25", "10.0.0.0/24 10.0.1.0/25"},
	} {
		var in []netip.Prefix
		for _, f := range strings.Fields(c.in) {
			in = append(in, netip.MustParsePrefix(f))
		}
		if got := strings.Trim(fmt.Sprint(merged(in)), "[]"); got != c.want {
			t.Errorf("%s: %s, want %s", c.in, got, c.want)
		}
	}
}

// Filters of others let the peers' traffic through, by the links where it passes.
func TestAdmittedForPeers(t *testing.T) {
	peers := Traffic{Pods: podRange, Peers: []netip.Prefix{netip.MustParsePrefix("10.244.2.0/24"), netip.MustParsePrefix("10.244.3.0/24")}, TunnelPort: 8472}
	var got []string
	for hook, list := range peers.admitted() {
		for _, r := range list {
			if r.From != podRange && r.To != podRange {
				got = append(got, fmt.Sprintf("%s %s", hook, r))
			}
		}
	}
	slices.Sort(got)
	want := "input from 10.244.2.0/23 icmp; input from 10.244.2.0/23 replies; input udp 8472; output to 10.244.2.0/23; output udp 8472"
	if strings.Join(got, "; ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "; "), want)
	}
}
