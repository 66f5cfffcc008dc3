package network

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"minik8s/internal/network/host"
	"minik8s/internal/network/overlay"
)

// What is somebody else's stays so: the host's own on a link, a router's, a neighbour's, another node's.
func TestServeOnlyWhatIsFree(t *testing.T) {
	n := running(t)
	link := n.host.DefaultLink()
	router, neighbour, node, free := netip.MustParseAddr("192.0.2.250"), netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("192.0.2.8"), netip.MustParseAddr("192.0.2.9")
	route := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: host.Net(netip.MustParsePrefix("198.51.100.0/24")), Gw: router.AsSlice(), Flags: int(netlink.FLAG_ONLINK)}
	near := host.Neighbour(link.Attrs().Index, neighbour, net.HardwareAddr{2, 0, 0, 0, 0, 7})
	near.State = netlink.NUD_REACHABLE
	if err := errors.Join(n.host.RouteAdd(route), n.host.NeighAdd(near), n.SetPeers(t.Context(), []overlay.Peer{{Node: "other", Address: node}})); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { errors.Join(n.host.RouteDel(route), n.host.NeighDel(near)) }) //nolint:errcheck // the namespace goes anyway
	err := n.Serve("g", []netip.Addr{router, netip.MustParseAddr(hostAddr), neighbour, node, free})
	if got, _ := n.Served("g"); !slices.Equal(got, []netip.Addr{free}) {
		t.Errorf("served: %v", got)
	}
	for _, want := range []string{"192.0.2.250 is the gateway of this machine's route to 198.51.100.0/24", hostAddr + " is this machine's own on ",
		"192.0.2.7 is a machine's on ", "192.0.2.8 is the address of node other"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no word of %q: %v", want, err)
		}
	}
	if err := n.Serve("g", []netip.Addr{free}); err != nil {
		t.Error(err)
	}
	if err := n.SetPeers(t.Context(), []overlay.Peer{{Node: "late", Address: free}}); err != nil {
		t.Fatal(err)
	}
	if got, _ := n.Served("g"); len(got) > 0 {
		t.Errorf("a node has come with the address, and the host still has %v", got)
	}
	if err := n.SetPeers(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if got, _ := n.Served("g"); !slices.Equal(got, []netip.Addr{free}) {
		t.Errorf("the node has gone, and the host has %v", got)
	}
}

// The host answers its pods at an address of its own; it comes back when somebody removes it, outlives the daemon, and goes
// with the rest.
func TestServe(t *testing.T) {
	n := running(t)
	dns, web := netip.MustParseAddr("10.96.0.10"), netip.MustParseAddr("10.8.0.1")
	before := n.HostAddrs()
	if err := n.Serve("d", []netip.Addr{dns}); err != nil {
		t.Fatal(err)
	}
	if err := n.Serve("g", []netip.Addr{web}); err != nil {
		t.Fatal(err)
	}
	if got := n.HostAddrs(); !slices.Equal(got, before) {
		t.Errorf("others may reach the host at %v, before at %v", got, before)
	}
	listener, err := net.Listen("tcp4", dns.String()+":53")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			c.Write([]byte(c.RemoteAddr().String())) //nolint:errcheck // the reader shows it
			c.Close()
		}
	}()
	p := newPod(t, n, "client")
	if got, err := netip.ParseAddrPort(p.get(dns.String()+":53", 10*time.Second)); err != nil || got.Addr() != p.addr {
		t.Errorf("a pod is seen as %s, %v", got, err)
	}
	has := func(want ...netip.Addr) func() bool {
		return func() bool {
			_, have, err := n.servedNow()
			var all []netip.Addr
			for _, addrs := range have {
				all = append(all, addrs...)
			}
			slices.SortFunc(all, netip.Addr.Compare)
			return err == nil && slices.Equal(all, want)
		}
	}
	lo, err := n.host.LinkByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := n.host.AddrDel(lo, servedAddr(n.label("d"), dns)); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a removed address is there again", has(web, dns))
	}
	next := real(t) // of the same daemon, started again
	if got, err := next.Served("d"); err != nil || !slices.Equal(got, []netip.Addr{dns}) {
		t.Errorf("the next run finds %v, %v", got, err)
	}
	if err := next.Serve("d", []netip.Addr{netip.MustParseAddr("10.96.0.11")}); err != nil {
		t.Fatal(err)
	}
	if !has(web, netip.MustParseAddr("10.96.0.11"))() {
		t.Error("an address for another purpose went, or an old one stayed")
	}
	if err := next.Serve("too-long-a-purpose", nil); err == nil {
		t.Error("a label that the kernel cuts was accepted")
	}
	if err := next.Teardown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !has()() {
		t.Error("an address is left behind")
	}
}
