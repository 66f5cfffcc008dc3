package stats

import (
	"bytes"
	"context"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"minik8s/internal/kubelet/cri"
)

// nothing is a runtime without containers.
type nothing struct{}

func (nothing) Stats(context.Context, func(string) bool) ([]cri.Stats, error) { return nil, nil }

func link(t *testing.T, name string) netlink.Link {
	t.Helper()
	l, err := netlink.LinkByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// kernel is what the kernel says of an interface when it is asked by netlink.
func kernel(t *testing.T, name string) cri.Network {
	t.Helper()
	s := link(t, name).Attrs().Statistics
	return cri.Network{Interface: name, Received: s.RxBytes, Sent: s.TxBytes, PacketsIn: s.RxPackets, PacketsOut: s.TxPackets,
		ErrorsIn: s.RxErrors, ErrorsOut: s.TxErrors, DroppedIn: s.RxDropped, DroppedOut: s.TxDropped}
}

func names(list []cri.Network) (out []string) {
	for _, n := range list {
		out = append(out, n.Interface)
	}
	return out
}

// What goes through the machine's interfaces is counted as the kernel counts it, and of what was earlier it is known, too.
func TestNetworkOfTheMachine(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("an interface needs root")
	}
	if err := os.WriteFile("/proc/sys/net/ipv6/conf/all/disable_ipv6", []byte("1"), 0); err != nil && !os.IsNotExist(err) {
		t.Fatal(err) // the kernel would send something of its own
	}
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}}
	pod := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "pod"}, PeerName: "inpod"}
	for _, l := range []netlink.Link{bridge, pod} {
		if err := netlink.LinkAdd(l); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { netlink.LinkDel(l) }) //nolint:errcheck // the namespace goes, too
	}
	gateway := net.IPv4(192, 0, 2, 254)
	wire := link(t, "wire0")
	if err := netlink.NeighSet(&netlink.Neigh{LinkIndex: link(t, "eth0").Attrs().Index, State: netlink.NUD_PERMANENT, IP: gateway,
		HardwareAddr: wire.Attrs().HardwareAddr}); err != nil {
		t.Fatal(err)
	}

	s := New(nothing{})
	if _, err := s.Read(t.Context(), Ask{}); err != nil {
		t.Fatal(err)
	}
	before := kernel(t, "eth0")
	out, err := net.DialUDP("udp4", nil, &net.UDPAddr{IP: gateway, Port: 9})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close() //nolint:errcheck // nothing is read
	const datagrams, size = 10, 1000
	for range datagrams {
		if _, err := out.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	packets, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(packets) //nolint:errcheck // nothing is read
	const frames, length = 7, 500
	for range frames { // of an experimental protocol, to nobody
		frame := bytes.Join([][]byte{{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}, {0x88, 0xb5}, make([]byte, length-14)}, nil)
		if err := unix.Sendto(packets, frame, 0, &unix.SockaddrLinklayer{Ifindex: wire.Attrs().Index, Protocol: 0xb588}); err != nil {
			t.Fatal(err)
		}
	}
	r, err := s.Read(t.Context(), Ask{Samples: 10, Rates: time.Second})
	s.forget.Stop()
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Node.Samples) != 2 {
		t.Fatalf("%d samples", len(r.Node.Samples))
	}
	first, last := &r.Node.Samples[0], r.Node.Last()
	if got := names(last.Interfaces); !slices.Equal(got, []string{"eth0", "br0"}) {
		t.Fatalf("the interfaces are %v", got)
	}
	if first.Interfaces[0] != before {
		t.Errorf("the first sample has %+v, the kernel said %+v", first.Interfaces[0], before)
	}
	if got, want := last.Interfaces[0], kernel(t, "eth0"); got != want {
		t.Errorf("the last sample has %+v, the kernel says %+v", got, want)
	}
	got := last.Interfaces[0]
	if sent, packets := got.Sent-before.Sent, got.PacketsOut-before.PacketsOut; packets != datagrams || sent != datagrams*(size+8+20+14) {
		t.Errorf("%d bytes in %d packets were sent; UDP's, IP's and Ethernet's headers are counted", sent, packets)
	}
	if received, packets := got.Received-before.Received, got.PacketsIn-before.PacketsIn; packets != frames || received != frames*length {
		t.Errorf("%d bytes in %d packets were received", received, packets)
	}
}

// The interface of the default route comes first, and a pair counts as the machine's only if such a route leads through it.
func TestWaysOut(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("an interface needs root")
	}
	other := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "other"}}
	if err := netlink.LinkAdd(other); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { netlink.LinkDel(other) }) //nolint:errcheck // the namespace goes, too
	if err := netlink.LinkSetUp(other); err != nil {
		t.Fatal(err)
	}
	eth0 := link(t, "eth0").Attrs().Index
	add := func(index, metric int) {
		t.Helper()
		_, all, err := net.ParseCIDR("0.0.0.0/0")
		if err != nil {
			t.Fatal(err)
		}
		r := &netlink.Route{LinkIndex: index, Dst: all, Scope: netlink.SCOPE_LINK, Priority: metric}
		if err := netlink.RouteAdd(r); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { netlink.RouteDel(r) }) //nolint:errcheck // it goes with its interface
	}
	var x, withLoopback Interfaces
	withLoopback.Loopback = true
	is := func(what string, want ...string) {
		t.Helper()
		for _, x := range []*Interfaces{&x, &withLoopback} {
			list, err := x.Read()
			if err != nil {
				t.Fatal(err)
			}
			got := names(list)
			lo := slices.Index(got, "lo")
			if lo >= 0 {
				got = slices.Delete(got, lo, lo+1)
			}
			if !slices.Equal(got, want) || (lo >= 0) != x.Loopback {
				t.Errorf("%s: %v, loopback at %d; want %v", what, got, lo, want)
			}
		}
	}
	is("one default route", "eth0", "other")
	add(other.Attrs().Index, 50)
	is("another, that is worse", "eth0", "other")
	add(eth0, 100)
	routes, err := netlink.RouteList(link(t, "eth0"), netlink.FAMILY_V4)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range routes {
		if r.Priority == 0 && r.Gw != nil {
			if err := netlink.RouteDel(&r); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { // for the tests after this one
				if err := netlink.RouteAdd(&r); err != nil {
					t.Error(err)
				}
			})
		}
	}
	is("another, that is better", "other", "eth0")
	if err := netlink.LinkDel(other); err != nil {
		t.Fatal(err)
	}
	is("the other is gone", "eth0")
}
