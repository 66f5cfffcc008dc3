package nft

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// balancer is a table with n services of three endpoints each.
func balancer(n int) Table {
	t := Table{Name: "minik8s-balance", Sets: []Set{
		{Name: "services", Key: []Type{Address, Protocol, Port}, Value: []Type{ToChain}},
		{Name: "nodeports", Key: []Type{Protocol, Port}, Value: []Type{ToChain}},
		{Name: "endpoints", Key: []Type{Address, Protocol, Port, Number}, Value: []Type{Address, Port}},
		{Name: "clients", Key: []Type{Address}, Dynamic: true, Size: 1000},
		{Name: "virtual", Key: []Type{Address}},
		{Name: "outside", Key: []Type{Port}},
	}, Chains: []Chain{
		{Name: "prerouting", NAT: true, Hook: Prerouting, Priority: PriorityDstNAT, Rules: []Rule{
			{GotoByAddress("services")}, {ToLocal(), NotTo(netip.MustParsePrefix("127.0.0.0/8")), GotoByPort("nodeports")},
			{ToAny("virtual"), ByTCP(), RejectTCP()}, {ToAny("virtual"), Reject()}}},
		{Name: "output", NAT: true, Hook: Output, Priority: PriorityDstNAT, Rules: []Rule{{GotoByAddress("services")}}},
		{Name: "postrouting", NAT: true, Hook: Postrouting, Priority: PrioritySrcNAT, Rules: []Rule{
			{ForwardedByDNAT(), NotInBy("mk"), NotOutBy("mk"), ToAny("virtual"), Masquerade()},
			{ForwardedByDNAT(), FromLocal(), Masquerade()}}},
	}}
	for i := range n {
		t = withService(t, i, 3)
	}
	return t
}

func serviceOf(i, endpoints int) (Chain, []Element) {
	g, name := []byte{10, 96, byte(i >> 8), byte(i), 6, 0, 0, 0, 0, 80, 0, 0}, fmt.Sprintf("svc-ns/name-%d/tcp/http", i)
	c := Chain{Name: name, Rules: []Rule{{DNATInTurn(CalledAddress, endpoints, "endpoints")}}}
	list := []Element{{Set: "services", Key: g, Goto: name},
		{Set: "virtual", Key: []byte{10, 96, byte(i >> 8), byte(i)}}}
	for e := range endpoints {
		list = append(list, Element{Set: "endpoints", Key: TurnKey(g, e), Value: []byte{10, 244, 0, byte(e), 0x1f, 0x90, 0, 0}})
	}
	return c, list
}

func withService(t Table, i, endpoints int) Table {
	c, list := serviceOf(i, endpoints)
	t.Chains = append(t.Chains, c)
	for _, e := range list {
		for j := range t.Sets {
			if t.Sets[j].Name == e.Set {
				t.Sets[j].Elements = append(t.Sets[j].Elements, e)
			}
		}
	}
	return t
}

func synced(t *testing.T, r Ruleset, tab Table, want bool, after string) {
	t.Helper()
	if changed, err := r.Sync(tab); err != nil || changed != want {
		t.Fatalf("sync after %s: changed: %v, %v; want %v", after, changed, err, want)
	}
}

// Kernel and Fake do the same with a table that changes piece by piece, and others' changes are repaired.
func TestPieces(t *testing.T) {
	t.Run("fake", func(t *testing.T) { pieces(t, NewFake()) })
	t.Run("kernel", func(t *testing.T) {
		asRoot(t)
		k := NewKernel()
		t.Cleanup(func() {
			if err := k.Delete("minik8s-balance"); err != nil {
				t.Error(err)
			}
		})
		pieces(t, k)
	})
}

func pieces(t *testing.T, r Ruleset) {
	name := balancer(0).Name
	edit := func(ok bool, what string, e Edit) {
		t.Helper()
		if err := r.Edit(name, e); (err == nil) != ok {
			t.Fatalf("%s: %v", what, err)
		}
	}
	edit(false, "without a table", Edit{Chains: []Chain{{Name: "x"}}})
	synced(t, r, balancer(300), true, "nothing")
	synced(t, r, balancer(300), false, "sync")

	three, had := serviceOf(7, 3)
	four, list := serviceOf(7, 4)
	more := Edit{Chains: []Chain{four}, Added: list[5:]}
	edit(true, "an endpoint comes", more)
	edit(false, "an endpoint that is not there goes, with another", Edit{Removed: []Element{list[5], {Set: "virtual", Key: []byte{1, 2, 3, 4}}}, Chains: []Chain{three}})
	synced(t, r, balancer(300), true, "an edit, and one that was refused")
	edit(true, "an endpoint comes again", more)
	edit(true, "it goes", Edit{Removed: list[5:], Chains: []Chain{three}})
	synced(t, r, balancer(300), false, "back and forth")

	fresh, its := serviceOf(300, 3)
	edit(false, "an element without its chain", Edit{Added: its})
	edit(true, "a service comes", Edit{Chains: []Chain{fresh}, Added: its})
	synced(t, r, balancer(301), false, "a service")
	edit(false, "a chain in use goes", Edit{Gone: []string{fresh.Name}})
	edit(true, "a service goes", Edit{Removed: its, Gone: []string{fresh.Name}})
	synced(t, r, balancer(300), false, "it went")
	moved := had[0]
	moved.Goto = "svc-ns/name-8/tcp/http"
	edit(true, "an element has another value", Edit{Removed: had[:1], Added: []Element{moved}})
	synced(t, r, balancer(300), true, "another value")

	sticky := Set{Name: "sticky-a", Key: []Type{Address}, Dynamic: true, Size: 10}
	with := balancer(300)
	with.Sets = append(with.Sets, sticky)
	with.Chains = append(with.Chains, Chain{Name: "stick", Rules: []Rule{{Remember("sticky-a", time.Hour)}, {DNATTo(netip.MustParseAddrPort("10.0.0.1:80"))}}})
	edit(true, "a chain with a set of its own", Edit{Sets: []Set{sticky}, Chains: with.Chains[len(with.Chains)-1:]})
	synced(t, r, with, false, "its own set")
	edit(false, "a set in use goes", Edit{GoneSets: []string{"sticky-a"}})
	synced(t, r, balancer(300), true, "they are not wanted")
	synced(t, r, with, true, "they are wanted again")

	guests := with
	guests.Guests = "policy-"
	edit(true, "another package comes", Edit{Sets: []Set{{Name: "policy-pods", Key: []Type{Address}}}, Chains: []Chain{{Name: "policy-in", Hook: Forward}}})
	synced(t, r, guests, false, "a guest")
	guests.Sets = slices.Clone(guests.Sets)
	guests.Sets[4].Key = []Type{Address, Address}
	guests.Sets[4].Elements = nil
	guests.Chains = slices.Clone(guests.Chains)
	guests.Chains[0].Rules, guests.Chains[2].Rules = guests.Chains[0].Rules[:2], nil
	synced(t, r, guests, true, "a new version's set")
	edit(true, "the guest is still there", Edit{Removed: nil, Gone: []string{"policy-in"}, GoneSets: []string{"policy-pods"}})
	synced(t, r, with, true, "the old version")
	if err := r.Delete(name); err != nil {
		t.Fatal(err)
	}
	synced(t, r, with, true, "a flush")
	synced(t, r, with, false, "all")
}

// The tool of others can list our rules: it aborts at some that the kernel takes, and with it every listing of the host.
func TestToolListsOurRules(t *testing.T) {
	asRoot(t)
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip("nft is not installed: make testtools")
	}
	k := NewKernel()
	tab := balancer(2)
	tab.Sets = append(tab.Sets, Set{Name: "port-endpoints", Key: []Type{Protocol, Port, Number}, Value: []Type{Address, Port}})
	tab.Chains = append(tab.Chains, Chain{Name: "all", Rules: []Rule{
		{FromAny("clients"), Goto("svc-ns/name-0/tcp/http")},
		{InBy("mk"), Goto("svc-ns/name-0/tcp/http")},
		{EveryNth(3), Goto("svc-ns/name-0/tcp/http")},
		{Remember("clients", 3*time.Hour+30*time.Second)},
		{From(pods), Drop()},
		{FromLocal(), DNATTo(netip.MustParseAddrPort("10.0.0.1:80"))},
		{DNATInTurn(CalledPort, 4, "port-endpoints")},
	}})
	t.Cleanup(func() {
		if err := k.Delete(tab.Name); err != nil {
			t.Error(err)
		}
	})
	synced(t, k, tab, true, "nothing")
	out, err := exec.Command("nft", "list", "table", "ip", tab.Name).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, c := range tab.Chains {
		for _, r := range c.Rules {
			want := strings.Replace(r.String(), "meta l4proto tcp reject", "reject", 1) // the tool leaves out what the reset implies
			if !strings.Contains(string(out), "\t\t"+want+"\n") {
				t.Errorf("the tool shows %q otherwise, or not:\n%s", want, out)
			}
		}
	}
}

// Events of a table tell of others' changes, and not of our own.
func TestWatchTable(t *testing.T) {
	asRoot(t)
	k, tab := NewKernel(), balancer(3)
	t.Cleanup(func() {
		if err := k.Delete(tab.Name); err != nil {
			t.Error(err)
		}
	})
	synced(t, k, tab, true, "nothing")
	ctx, stop := context.WithCancel(t.Context())
	started, changed, ended := make(chan struct{}), make(chan struct{}, 100), make(chan error)
	go func() {
		ended <- k.WatchTable(ctx, tab.Name, func() { close(started) }, func() { changed <- struct{}{} })
	}()
	<-started
	others := make(chan struct{}, 100)
	begun := make(chan struct{})
	go func() {
		ended <- WatchBut(ctx, tab.Name, func() { close(begun) }, func() { others <- struct{}{} })
	}()
	<-begun
	c, list := serviceOf(3, 3)
	if err := k.Edit(tab.Name, Edit{Chains: []Chain{c}, Added: list}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-others:
		t.Error("told of a table that is not asked for")
	default:
	}
	if err := k.Apply(Table{Name: "minik8s-other"}); err != nil {
		t.Fatal(err)
	}
	if err := k.Delete("minik8s-other"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
		t.Error("told of our own change, or of another table's")
	default:
	}
	if err := NewKernel().Edit(tab.Name, Edit{Removed: list[:1]}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
	case <-time.After(20 * time.Second):
		t.Error("not told of another's change")
	}
	select {
	case <-others:
	case <-time.After(20 * time.Second):
		t.Error("not told of another table")
	}
	stop()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// Thousands of services are loaded and read back, and one more changes nothing else.
func TestThousands(t *testing.T) {
	asRoot(t)
	k, tab := NewKernel(), balancer(5000)
	t.Cleanup(func() {
		if err := k.Delete(tab.Name); err != nil {
			t.Error(err)
		}
	})
	synced(t, k, tab, true, "nothing")
	synced(t, NewKernel(), tab, false, "5,000 services")
	c, list := serviceOf(4999, 4)
	if err := k.Edit(tab.Name, Edit{Chains: []Chain{c}, Added: list[5:]}); err != nil {
		t.Fatal(err)
	}
	have, err := k.Elements(tab, "endpoints")
	if err != nil || len(have) != 15001 {
		t.Errorf("%d elements, %v", len(have), err)
	}
}
