package network

import (
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"minik8s/internal/network/hostfilter"
	"minik8s/internal/nft"
)

var podRange = netip.MustParsePrefix("10.244.0.0/24")

// The rules as the nft tool would show them.
func TestRules(t *testing.T) {
	got := rules("minik8s-pods-ab12", "mkab12", "mkab12-vxlan", podRange, nil).String()
	want := `table ip minik8s-pods-ab12 {
	map hostports {
		type inet_proto . inet_service : ipv4_addr . inet_service
	}
	map hostports-at {
		type ipv4_addr . inet_proto . inet_service : ipv4_addr . inet_service
	}
	set hairpins {
		type ipv4_addr . ipv4_addr
	}
	set remote-ranges {
		type ipv4_addr
		flags interval
	}
	set tunnel-ports {
		type inet_service
	}
	set endpoints {
		type ipv4_addr
	}
	chain spoofed {
		type filter hook prerouting priority -300; policy accept;
		iifname "mkab12*" fib saddr . iif oif missing drop
		udp dport @tunnel-ports fib daddr type local ip saddr != @endpoints drop
	}
	chain prerouting {
		type nat hook prerouting priority -100; policy accept;
		fib daddr type local ip daddr != 127.0.0.0/8 dnat ip to ip daddr . meta l4proto . th dport map @hostports-at
		fib daddr type local ip daddr != 127.0.0.0/8 dnat ip to meta l4proto . th dport map @hostports
	}
	chain output {
		type nat hook output priority -100; policy accept;
		fib daddr type local ip daddr != 127.0.0.0/8 dnat ip to ip daddr . meta l4proto . th dport map @hostports-at
		fib daddr type local ip daddr != 127.0.0.0/8 dnat ip to meta l4proto . th dport map @hostports
	}
	chain postrouting {
		type nat hook postrouting priority 100; policy accept;
		ip saddr 10.244.0.0/24 ip daddr != 10.244.0.0/24 ip daddr != @remote-ranges masquerade
		oifname "mkab12-vxlan" ip saddr != 10.244.0.0/24 masquerade
		ip saddr . ip daddr @hairpins masquerade
	}
}
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Host ports as elements of the table, and who may have them.
func TestHostPorts(t *testing.T) {
	n, f := withFake(t)
	f.Tables[n.TableName()] = n.desired()
	one, two := netip.MustParseAddr("10.244.0.7"), netip.MustParseAddr("10.244.0.8")
	shown := func() string {
		var list []string
		for _, s := range f.Tables[n.TableName()].Sets {
			for _, e := range s.Elements {
				list = append(list, strings.TrimSpace(fmt.Sprintf("%s %x %x", s.Name, e.Key, e.Value)))
			}
		}
		return strings.Join(list, "\n")
	}
	ports := []corev1.ContainerPort{
		{HostPort: 40080, ContainerPort: 80},
		{HostIP: "0.0.0.0", HostPort: 40053, ContainerPort: 53, Protocol: "SCTP"},
		{HostIP: "192.0.2.1", HostPort: 40080, ContainerPort: 81, Protocol: "TCP"},
	}
	for range 2 { // the second time changes nothing
		if err := n.AddHostPorts("one", one, ports); err != nil {
			t.Fatal(err)
		}
	}
	want := `hostports 060000009c900000 0af4000700500000
hostports 840000009c750000 0af4000700350000
hostports-at c0000201060000009c900000 0af4000700510000
hairpins 0af400070af40007`
	if got := shown(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, c := range []struct {
		port corev1.ContainerPort
		want string // of the error; empty: none
	}{
		{corev1.ContainerPort{HostPort: 40080, ContainerPort: 1, Protocol: "TCP"}, "host port 40080/TCP is taken by another pod"},
		{corev1.ContainerPort{HostIP: "192.0.2.1", HostPort: 40080, ContainerPort: 1}, "host port 40080/TCP is taken by another pod"},
		{corev1.ContainerPort{HostPort: 40081, Protocol: "IPX"}, `host port 40081: unknown protocol "IPX"`},
		{corev1.ContainerPort{HostIP: "2001:db8::1", HostPort: 40081}, "host port 40081/TCP at 2001:db8::1: only IPv4 is served"},
		{corev1.ContainerPort{HostIP: "here", HostPort: 40081}, "host port 40081/TCP: ParseAddr"},
		{corev1.ContainerPort{HostPort: 40080, Protocol: "SCTP"}, ""}, // another protocol is another port
	} {
		err := n.AddHostPorts("two", two, []corev1.ContainerPort{c.port})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.port, err, c.want)
		}
	}
	for id, addr := range map[string]netip.Addr{"one": one, "two": two} {
		for range 2 {
			if err := n.Disconnect(id, addr); err != nil {
				t.Error(err)
			}
		}
	}
	if got := shown(); got != "" {
		t.Errorf("left behind:\n%s", got)
	}
}

// network on a fake filter.
func withFake(t *testing.T) (*Network, *nft.Fake) {
	t.Helper()
	f := nft.NewFake()
	n, err := New(Config{PodCIDR: podRange, Owner: t.Name(), NodePorts: []uint16{6443}, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	n.nf, n.ready = f, true
	n.filters = hostfilter.New(f, tables, n.TableName(), n.cfg.Log)
	return n, f
}

// Prepare saves Setup a transaction, and never takes away the rules of pods that are not known yet.
func TestPrepare(t *testing.T) {
	for _, c := range []struct {
		name     string
		between  func(n *Network, f *nft.Fake)
		existing bool // the rules of an earlier run
		writes   int
	}{
		{"the first start", func(*Network, *nft.Fake) {}, false, 1},
		{"pods of an earlier run", func(n *Network, _ *nft.Fake) { n.Restore("one", podRange.Addr().Next().Next()) }, false, 2},
		{"rules of an earlier run", func(_ *Network, f *nft.Fake) {
			if f.Writes != 0 {
				t.Error("they were replaced before its pods were known")
			}
		}, true, 1},
	} {
		n, f := withFake(t)
		n.ready = false
		if c.existing {
			f.Tables[n.TableName()] = n.desired()
		}
		if err := n.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.between(n, f)
		if err := n.Setup(t.Context()); err != nil {
			t.Fatal(err)
		}
		if same, err := f.Same(n.desired()); err != nil || !same || f.Writes != c.writes {
			t.Errorf("%s: %d transactions, want %d; as it should be: %v, %v", c.name, f.Writes, c.writes, same, err)
		}
		if err := n.Teardown(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestFiltersOfOthers(t *testing.T) {
	n, f := withFake(t)
	base := func(table, name string, hook nft.Hook, drops bool, list ...nft.OtherRule) nft.BaseChain {
		return nft.BaseChain{Family: "ip", Table: table, Name: name, Hook: hook, Drops: drops, Rules: list}
	}
	f.Foreign = []nft.BaseChain{
		base("filter", "FORWARD", nft.Forward, true),
		base("filter", "INPUT", nft.Input, false),
		base("theirs", "in", nft.Input, false, nft.OtherRule{Chain: "in", Handle: 3, Verdict: nft.Drops}),
		base("owned", "fw", nft.Forward, true),
	}
	f.Refuse["owned"] = unix.EPERM
	if _, err := n.Repair(); err != nil {
		t.Fatal(err)
	}
	shown := func() string {
		var b strings.Builder
		for _, c := range f.Foreign {
			for _, r := range c.Rules {
				fmt.Fprintln(&b, c.Name, strings.ReplaceAll(r.Comment, n.TableName(), "tag"))
			}
		}
		return b.String()
	}
	want := `FORWARD tag: from 10.244.0.0/24
FORWARD tag: to 10.244.0.0/24
in tag: from 10.244.0.0/24 replies
in tag: from 10.244.0.0/24 icmp
in tag: from 10.244.0.0/24 udp 53
in tag: from 10.244.0.0/24 tcp 53
in tag: from 10.244.0.0/24 tcp 6443
in ` + "\n"
	if got := shown(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := n.Trouble().Stopped; len(got) != 1 || !strings.HasPrefix(got[0], "table ip owned chain fw, policy drop") {
		t.Errorf("what stands in the way: %q", got)
	}
	writes := f.Writes
	if again, err := n.Repair(); again || err != nil || f.Writes != writes {
		t.Errorf("what is right is written again: %v, %v, %d writes", again, err, f.Writes-writes)
	}

	// Somebody puts a rule before ours, and then opens what was closed.
	f.Foreign[0].Rules = append([]nft.OtherRule{{Chain: "FORWARD", Handle: 9, Verdict: nft.Drops}}, f.Foreign[0].Rules...)
	f.Foreign[3].Drops = false
	if _, err := n.Repair(); err != nil {
		t.Fatal(err)
	}
	if got := f.Foreign[0].Rules; len(got) != 3 || got[2].Handle != 9 {
		t.Errorf("ours are not first: %+v", got)
	}
	if got := n.Trouble().Stopped; len(got) != 0 {
		t.Errorf("still in the way: %q", got)
	}
	f.Foreign[0].Drops, f.Foreign[0].Rules = false, f.Foreign[0].Rules[:2]
	if _, err := n.Repair(); err != nil || len(f.Foreign[0].Rules) != 0 {
		t.Errorf("where nothing is stopped ours are not needed: %+v, %v", f.Foreign[0].Rules, err)
	}
	if err := n.Teardown(t.Context()); err != nil {
		t.Error(err)
	}
	if got := shown(); got != "in \n" {
		t.Errorf("left behind: %s", got)
	}
}
