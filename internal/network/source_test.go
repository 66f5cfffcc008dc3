package network

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"minik8s/internal/network/host"
)

// A machine that loses its last address, as a laptop that goes offline, still reaches its pods, those of before and new ones; with
// an address it sends from that again.
func TestOfflineHostReachesPods(t *testing.T) {
	n := running(t)
	from := map[*pod]chan netip.Addr{}
	serving := func(name string) *pod {
		p := newPod(t, n, name)
		from[p] = make(chan netip.Addr, 100)
		p.inside(func() error { return listen(t, "0.0.0.0:80", name, from[p]) })
		return p
	}
	before := serving("before")
	reached := func(p *pod, source string) {
		t.Helper()
		var seen netip.Addr
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
			if _, err := get(fmt.Sprintf("%s:80", p.addr), 500*time.Millisecond); err != nil {
				continue
			}
			if seen = <-from[p]; seen.String() == source {
				return
			}
		}
		t.Fatalf("the host reached the pod from %s, want %s", seen, source)
	}
	reached(before, hostAddr)

	if _, err := n.Resolver(); err != nil { // its address is no source
		t.Fatal(err)
	}
	take, give := onlyAddress(t, n)
	t.Cleanup(give)
	take()
	reached(before, host.Gateway.String())
	offline := serving("offline")
	reached(offline, host.Gateway.String())

	give()
	reached(before, hostAddr)
	reached(offline, hostAddr)
}

// onlyAddress takes the host's address away, and gives it back with the routes that go with it.
func onlyAddress(t *testing.T, n *Network) (take, give func()) {
	t.Helper()
	routes, err := n.host.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{}, netlink.RT_FILTER_DST) // the default one
	if err != nil {
		t.Fatal(err)
	}
	addrs, err := n.host.AddrList(nil, netlink.FAMILY_V4)
	if err != nil {
		t.Fatal(err)
	}
	addrs = slices.DeleteFunc(addrs, func(a netlink.Addr) bool { return !sendsFrom(a.IP, a.Scope) })
	if len(addrs) != 1 {
		t.Fatalf("the host has the addresses %v, want one", addrs)
	}
	link, err := n.host.LinkByIndex(addrs[0].LinkIndex)
	if err != nil {
		t.Fatal(err)
	}
	take = func() {
		if err := n.host.AddrDel(link, &addrs[0]); err != nil {
			t.Fatal(err)
		}
	}
	return take, func() {
		err := n.host.AddrReplace(link, &addrs[0])
		for _, r := range routes {
			err = errors.Join(err, n.host.RouteReplace(&r))
		}
		if err != nil {
			t.Error(err)
		}
	}
}
