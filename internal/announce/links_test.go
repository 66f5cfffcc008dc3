package announce

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
)

// plug makes a link of this machine, called near, and its other end, called far.
func plug(t *testing.T, near net.HardwareAddr) (far int) {
	t.Helper()
	pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "near", HardwareAddr: near}, PeerName: "far", PeerHardwareAddr: asking}
	if err := netlink.LinkAdd(pair); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"near", "far"} {
		l, err := netlink.LinkByName(name)
		if err == nil {
			err = netlink.LinkSetUp(l)
		}
		if err != nil {
			t.Fatal(err)
		}
		far = l.Attrs().Index
	}
	return far
}

// answered asks by ARP at the other end until somebody answers that he has the address, and returns his hardware address.
func answered(t *testing.T, far int) net.HardwareAddr {
	t.Helper()
	s, err := open(far)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	buf := make([]byte, 2048)
	for range 50 {
		s.Write(packet{op: opRequest, sender: asking, address: other, target: make(net.HardwareAddr, hardwareLen), targeted: ours}.frame(everybody)) //nolint:errcheck // it is asked again
		s.SetReadDeadline(time.Now().Add(200 * time.Millisecond))                                                                                    //nolint:errcheck // it never fails
		for {
			n, err := s.Read(buf)
			if err != nil {
				break
			}
			if p, ok := parse(buf[:n]); ok && p.op == opReply && p.address == ours {
				return p.sender
			}
		}
	}
	t.Fatal("nobody answers")
	return nil
}

// heard is how roles hears of addresses.
func heard(ctx context.Context, changed func()) {
	addrs := make(chan netlink.AddrUpdate)
	if err := netlink.AddrSubscribe(addrs, ctx.Done()); err != nil {
		return
	}
	for changed(); ; changed() {
		if _, ok := <-addrs; !ok {
			return
		}
	}
}

// A link that comes late, gets another hardware address, or is made anew is answered on.
func TestLinksComeAndGo(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("links need root")
	}
	a := New(heard, slog.New(slog.NewTextHandler(t.Output(), nil)))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); a.Run(ctx) }()
	defer func() { stop(); <-ended }()
	a.Set([]netip.Addr{ours})
	first, second := net.HardwareAddr{2, 0, 0, 0, 1, 1}, net.HardwareAddr{2, 0, 0, 0, 1, 2}
	far := plug(t, first)
	near, err := netlink.LinkByName("near")
	if err != nil {
		t.Fatal(err)
	}
	addr, err := netlink.ParseAddr("10.0.0.1/24")
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.AddrAdd(near, addr); err != nil {
		t.Fatal(err)
	}
	if got := answered(t, far); got.String() != first.String() {
		t.Errorf("a link that came late: %s", got)
	}
	if err := netlink.LinkSetHardwareAddr(near, second); err != nil {
		t.Fatal(err)
	}
	more, err := netlink.ParseAddr("10.0.0.2/24") // as it gets its address anew
	if err == nil {
		err = netlink.AddrAdd(near, more)
	}
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); ; {
		got := answered(t, far)
		if got.String() == second.String() {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("another hardware address: %s", got)
		}
	}
	if err := netlink.LinkDel(near); err != nil {
		t.Fatal(err)
	}
	far = plug(t, first)
	if near, err = netlink.LinkByName("near"); err != nil {
		t.Fatal(err)
	}
	if err := netlink.AddrAdd(near, addr); err != nil {
		t.Fatal(err)
	}
	if got := answered(t, far); got.String() != first.String() {
		t.Errorf("a link that was made anew: %s", got)
	}
}
