package nft

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

func asRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("nftables needs root")
	}
}

var pods = netip.MustParsePrefix("10.244.0.0/23")

func sample() Table {
	t := Table{Name: "minik8s-test", Sets: []Set{
		{Name: "ports", Key: []Type{Protocol, Port}, Value: []Type{Address, Port}},
		{Name: "pairs", Key: []Type{Address, Address}},
	}}
	for i := range 700 { // more than fit into one message
		t.Sets[1].Elements = append(t.Sets[1].Elements, Element{Set: "pairs", Key: []byte{10, 0, byte(i >> 8), byte(i), 10, 0, 0, 1}})
	}
	t.Chains = []Chain{
		{Name: "spoofed", Hook: Prerouting, Priority: PriorityRaw, Rules: []Rule{{InBy("mk"), Spoofed(), Drop()}}},
		{Name: "in", NAT: true, Hook: Prerouting, Priority: PriorityDstNAT, Rules: []Rule{{ToLocal(), NotTo(netip.MustParsePrefix("127.0.0.0/8")), DNATByPort("ports")}}},
		{Name: "out", NAT: true, Hook: Postrouting, Priority: PrioritySrcNAT, Rules: []Rule{{From(pods), NotTo(pods), Masquerade()}, {PairIn("pairs"), Masquerade()}}},
	}
	return t
}

func conn(t *testing.T) *nftables.Conn {
	t.Helper()
	c, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Ranges that touch each other are elements of their own, also when they come and go one by one.
func TestRanges(t *testing.T) {
	asRoot(t)
	k := NewKernel()
	tab := Table{Name: "minik8s-ranges", Sets: []Set{
		{Name: "ranges", Key: []Type{Address}, Ranges: true}, {Name: "ports", Key: []Type{Port}},
		{Name: "peers", Key: []Type{Address}}}}
	tab.Chains = []Chain{{Name: "in", Hook: Prerouting, Priority: PriorityRaw, Rules: []Rule{
		{UDPToAny("ports"), ToLocal(), NotFromAny("peers"), Drop()}}},
		{Name: "out", NAT: true, Hook: Postrouting, Priority: PrioritySrcNAT, Rules: []Rule{
			{From(pods), NotTo(pods), NotToAny("ranges"), Masquerade()}, {OutBy("mkab12"), NotFrom(pods), Masquerade()}}}}
	t.Cleanup(func() {
		if err := k.Delete(tab.Name); err != nil {
			t.Error(err)
		}
	})
	all := func(skip int) (out []Element) {
		for i := range 300 {
			if i != skip {
				out = append(out, Range("ranges", netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}), 24))...)
			}
		}
		return append(out, Range("ranges", netip.MustParsePrefix("255.255.255.0/24"))...)
	}
	same := func(elements []Element, after string) {
		t.Helper()
		tab.Sets[0].Elements = elements
		if ok, err := k.Same(tab); err != nil || !ok {
			t.Fatalf("after %s: the same: %v, %v", after, ok, err)
		}
	}
	tab.Sets[0].Elements = all(-1)
	if err := k.Apply(tab); err != nil {
		t.Fatal(err)
	}
	same(all(-1), "apply")
	one := Range("ranges", netip.MustParsePrefix("10.0.7.0/24"))
	if err := k.Change(tab.Name, false, one); err != nil {
		t.Fatal(err)
	}
	same(all(7), "a range went")
	if err := k.Change(tab.Name, true, append(one, Element{Set: "ports", Key: []byte{0x21, 0x18}})); err != nil {
		t.Fatal(err)
	}
	tab.Sets[1].Elements = []Element{{Set: "ports", Key: []byte{0x21, 0x18}}}
	same(all(-1), "it came back")
}

// Every change of our table by others is detected, and nothing else is taken for one.
func TestSame(t *testing.T) {
	asRoot(t)
	k, tab := NewKernel(), sample()
	t.Cleanup(func() {
		if err := k.Delete(tab.Name); err != nil {
			t.Error(err)
		}
	})
	same := func(want bool, after string) {
		t.Helper()
		if got, err := k.Same(tab); err != nil || got != want {
			t.Errorf("after %s: the same: %v, %v", after, got, err)
		}
	}
	apply := func() {
		t.Helper()
		if err := k.Apply(tab); err != nil {
			t.Fatal(err)
		}
		same(true, "apply")
	}
	same(false, "nothing")
	apply()

	port := Element{Set: "ports", Key: []byte{6, 0, 0, 0, 0, 80, 0, 0}, Value: []byte{10, 0, 0, 2, 0, 80, 0, 0}}
	if err := k.Change(tab.Name, true, []Element{port}); err != nil {
		t.Fatal(err)
	}
	same(false, "an element too many")
	tab.Sets[0].Elements = []Element{port}
	same(true, "an element of ours")
	tab.Sets[0].Elements[0].Value = []byte{10, 0, 0, 3, 0, 80, 0, 0}
	same(false, "another value")
	tab.Sets[0].Elements = nil
	for range 2 {
		if err := k.Change(tab.Name, false, []Element{port}); err != nil {
			t.Error("taken out, and once more:", err)
		}
	}
	same(true, "taken out")

	for what, change := range map[string]func(c *nftables.Conn){
		"nft flush ruleset": func(c *nftables.Conn) { c.FlushRuleset() },
		"a chain flushed":   func(c *nftables.Conn) { c.FlushChain(&nftables.Chain{Name: "in", Table: table(tab.Name)}) },
		"a table flushed":   func(c *nftables.Conn) { c.FlushTable(table(tab.Name)) },
		"a rule too many": func(c *nftables.Conn) {
			c.AddRule(&nftables.Rule{Table: table(tab.Name), Chain: &nftables.Chain{Name: "out"}, Exprs: []expr.Any{&expr.Verdict{Kind: expr.VerdictDrop}}})
		},
		"a set emptied": func(c *nftables.Conn) { c.FlushSet(&nftables.Set{Table: table(tab.Name), Name: "pairs"}) },
	} {
		c := conn(t)
		change(c)
		if err := c.Flush(); err != nil {
			t.Fatal(what, err)
		}
		same(false, what)
		apply()
	}
	if chains, err := k.Chains("minik8s-"); err != nil || fmt.Sprint(chains) != "map[minik8s-test:[spoofed in out]]" {
		t.Errorf("%v, %v", chains, err)
	}
}

func TestWatch(t *testing.T) {
	asRoot(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	started, changed, done := make(chan struct{}), make(chan struct{}, 100), make(chan error, 1)
	go func() {
		done <- Watch(ctx, func() { close(started) }, func() { changed <- struct{}{} })
	}()
	<-started
	k := NewKernel()
	t.Cleanup(func() {
		if err := k.Delete("minik8s-test"); err != nil {
			t.Error(err)
		}
	})
	if err := k.Apply(sample()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
	case <-ctx.Done():
		t.Fatal("a change is not told")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

var accepts = []Accept{
	{From: pods}, {To: netip.MustParsePrefix("10.1.2.3/32")}, {From: pods, Replies: true},
	{From: pods, Protocol: "tcp", Port: 6443}, {From: pods, Protocol: "udp", Port: 53}, {From: pods, Protocol: "icmp"},
}

// addFilter makes a filtering chain as a firewall would.
func addFilter(t *testing.T, family nftables.TableFamily, tab, chain string, hook *nftables.ChainHook, policy nftables.ChainPolicy, rules ...[]expr.Any) {
	t.Helper()
	c := conn(t)
	nt := c.AddTable(&nftables.Table{Family: family, Name: tab})
	nc := c.AddChain(&nftables.Chain{Table: nt, Name: chain, Type: nftables.ChainTypeFilter, Hooknum: hook,
		Priority: nftables.ChainPriorityFilter, Policy: &policy})
	for _, r := range rules {
		c.AddRule(&nftables.Rule{Table: nt, Chain: nc, Exprs: r})
	}
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c := conn(t)
		c.DelTable(nt)
		_ = c.Flush() // another test's flush may have been first
	})
}

func TestAdmit(t *testing.T) {
	asRoot(t)
	reject := []expr.Any{&expr.Counter{}, &expr.Reject{Type: unix.NFT_REJECT_ICMP_UNREACH, Code: 3}}
	addFilter(t, nftables.TableFamilyIPv4, "filter", "FORWARD", nftables.ChainHookForward, nftables.ChainPolicyDrop)
	addFilter(t, nftables.TableFamilyINet, "host", "in", nftables.ChainHookInput, nftables.ChainPolicyAccept, reject)
	k := NewKernel()
	find := func(name string) BaseChain {
		t.Helper()
		list, err := k.Others("minik8s-")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list {
			if c.Name == name {
				return c
			}
		}
		t.Fatal("no chain", name)
		return BaseChain{}
	}
	all := func(Link) bool { return true }
	for name, where := range map[string]string{
		"FORWARD": "table ip filter chain FORWARD, policy drop",
		"in":      "table inet host chain in, rule with handle",
	} {
		c := find(name)
		if e := c.Effect("tag", accepts[0], all); !strings.HasPrefix(e.Stop, where) {
			t.Errorf("%s: %+v", name, e)
		}
		for range 2 { // again is the same
			if err := k.Admit(c, "tag", accepts); err != nil {
				t.Fatal(name, err)
			}
			c = find(name)
			if e := c.Effect("tag", accepts[0], all); e.Stop == "" || !c.Admitted("tag", accepts, e.Index) {
				t.Errorf("%s: %+v", name, c)
			}
		}
	}
	if path, err := exec.LookPath("iptables-nft-save"); err == nil {
		out, err := exec.Command(path).CombinedOutput()
		text := string(out)
		if err != nil || strings.Contains(text, "incompatible") {
			t.Errorf("iptables cannot read its own table: %v\n%s", err, text)
		}
		for _, want := range []string{
			"-A FORWARD -s 10.244.0.0/23 -m comment --comment \"tag: from 10.244.0.0/23\" -j ACCEPT",
			"-A FORWARD -d 10.1.2.3/32 -m comment",
			"-A FORWARD -s 10.244.0.0/23 -m conntrack --ctstate RELATED,ESTABLISHED -m comment",
			"-A FORWARD -s 10.244.0.0/23 -p tcp -m tcp --dport 6443 -m comment",
			"-A FORWARD -s 10.244.0.0/23 -p udp -m udp --dport 53 -m comment",
			"-A FORWARD -s 10.244.0.0/23 -p icmp -m comment",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("iptables-save lacks %s:\n%s", want, text)
			}
		}
	}
	for _, name := range []string{"FORWARD", "in"} {
		if err := k.Admit(find(name), "tag", nil); err != nil {
			t.Error(err)
		}
		if c := find(name); !c.Admitted("tag", nil, 0) {
			t.Errorf("%s: not taken out: %+v", name, c)
		}
	}
}

// The matches of rules in other tables are read from the kernel, whichever tool wrote them.
func TestReadRulesOfOthers(t *testing.T) {
	asRoot(t)
	pods := netip.MustParsePrefix("10.244.3.0/24")
	drop := func(a Accept) []expr.Any {
		e := a.exprs(nftables.TableFamilyINet)
		return append(e[:len(e)-1], &expr.Verdict{Kind: expr.VerdictDrop})
	}
	fresh := []expr.Any{&expr.Ct{Key: expr.CtKeySTATE, Register: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: binaryutil.NativeEndian.PutUint32(stateNew), Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)}, &expr.Verdict{Kind: expr.VerdictDrop}}
	private := []expr.Any{&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: saddrAt, Len: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{10}}, &expr.Verdict{Kind: expr.VerdictDrop}}
	ports := []expr.Any{&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: dportAt, Len: 2},
		&expr.Range{Op: expr.CmpOpEq, Register: 1, FromData: []byte{0, 20}, ToData: []byte{0, 30}}, &expr.Verdict{Kind: expr.VerdictDrop}}
	limit := []expr.Any{&expr.Limit{Type: expr.LimitTypePkts, Rate: 5, Over: true, Unit: expr.LimitTimeSecond, Burst: 5}, &expr.Verdict{Kind: expr.VerdictDrop}}
	k := NewKernel()
	effect := func(table string) Effect {
		t.Helper()
		list, err := k.Others("minik8s-")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list {
			if c.Table == table && c.Hook == Forward {
				return c.Effect("tag", Accept{From: pods}, func(Link) bool { return true })
			}
		}
		t.Fatal("no table", table)
		return Effect{}
	}
	const stops, partly, nothing = "stops", "partly", "nothing"
	check := func(name, want string, e Effect) {
		t.Helper()
		got := nothing
		if e.Stop != "" {
			got = stops
		} else if len(e.Partly) > 0 {
			got = partly
		}
		if got != want {
			t.Errorf("%s: %s, want %s: %+v", name, got, want, e)
		}
	}
	for i, c := range []struct {
		name string
		rule []expr.Any
		want string
	}{
		{"the pods' own range", drop(Accept{From: pods}), stops},
		{"a wider one", drop(Accept{From: netip.MustParsePrefix("10.240.0.0/12")}), stops},
		{"by its first byte", private, stops},
		{"another one", drop(Accept{From: netip.MustParsePrefix("172.16.0.0/12")}), nothing},
		{"a destination", drop(Accept{To: pods}), partly},
		{"a protocol", drop(Accept{Protocol: "udp"}), partly},
		{"a port", drop(Accept{Protocol: "tcp", Port: 25}), partly},
		{"ports", ports, partly},
		{"connections that there are", drop(Accept{Replies: true}), stops},
		{"new ones", fresh, stops},
		{"a limit", limit, partly},
	} {
		table := fmt.Sprint("theirs", i)
		addFilter(t, nftables.TableFamilyINet, table, "fw", nftables.ChainHookForward, nftables.ChainPolicyAccept, c.rule)
		check(c.name, c.want, effect(table))
	}

	tool, err := exec.LookPath("iptables-nft")
	if err != nil {
		return
	}
	run := func(args ...string) {
		t.Helper()
		if out, err := exec.Command(tool, args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
	}
	t.Cleanup(func() { run("-F", "FORWARD") })
	for _, c := range []struct{ rule, want string }{
		{"-s 10.0.0.0/8", stops},
		{"-s 10.244.0.0/15", stops},
		{"! -s 192.168.0.0/16", stops},
		{"! -s 10.244.0.0/16", nothing},
		{"-p tcp --dport 25", partly},
		{"-p udp --dport 1024:65535", partly},
		{"-m conntrack --ctstate NEW", stops},
		{"-m conntrack --ctstate INVALID", nothing},
		{"-m conntrack ! --ctstate RELATED,ESTABLISHED", stops},
		{"-m addrtype --dst-type BROADCAST", partly},
	} {
		run("-F", "FORWARD")
		run(append(append([]string{"-A", "FORWARD"}, strings.Fields(c.rule)...), "-j", "DROP")...)
		check(c.rule, c.want, effect("filter"))
	}
}
