package network

import (
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"
)

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
