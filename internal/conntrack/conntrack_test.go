package conntrack

import (
	"net"
	"net/netip"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"minik8s/internal/machine"
	"minik8s/internal/nft"
)

func TestMain(m *testing.M) { machine.Run(m.Run) }

// Only the flows that are meant end, and those of other protocols are not even looked at.
func TestEnd(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("conntrack needs root")
	}
	k := nft.NewKernel() // a rule about status makes the kernel track connections
	tab := nft.Table{Name: "minik8s-track", Chains: []nft.Chain{{Name: "out", NAT: true, Hook: nft.Output, Priority: nft.PriorityDstNAT,
		Rules: []nft.Rule{{nft.To(netip.MustParsePrefix("192.0.2.77/32")), nft.DNATTo(netip.MustParseAddrPort("192.0.2.1:5353"))}}}}}
	if _, err := k.Sync(tab); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Delete(tab.Name); err != nil {
			t.Error(err)
		}
	})
	send := func(network, addr string) {
		c, err := net.Dial(network, addr)
		if err != nil {
			return // refused, and tracked all the same
		}
		c.Write([]byte("x")) //nolint:errcheck // nobody answers
		c.Close()            //nolint:errcheck // as above
	}
	l, err := net.Listen("tcp4", "192.0.2.1:5353")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // a test's
	send("udp4", "192.0.2.77:53")
	send("udp4", "192.0.2.1:99")
	send("tcp4", "192.0.2.77:53")
	conn, err := net.Dial("tcp4", "192.0.2.77:80")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // a test's
	from, to := conn.LocalAddr().(*net.TCPAddr).AddrPort(), netip.MustParseAddrPort("192.0.2.77:80")
	if f, ok, err := Find(unix.IPPROTO_TCP, from, to); err != nil || !ok || f.Server != netip.MustParseAddrPort("192.0.2.1:5353") || f.From != from || f.To != to {
		t.Errorf("%+v %v %v", f, ok, err)
	}
	if f, ok, err := Find(unix.IPPROTO_TCP, from, netip.MustParseAddrPort("192.0.2.77:81")); err != nil || ok {
		t.Errorf("%+v %v %v", f, ok, err)
	}
	seen := map[string]string{}
	count := func(end string) int {
		n, err := End(unix.IPPROTO_UDP, func(f Flow) bool {
			seen[f.To.String()] = f.Server.String()
			return f.To.String() == end
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := count("192.0.2.77:53"); n != 1 || len(seen) != 2 || seen["192.0.2.77:53"] != "192.0.2.1:5353" || seen["192.0.2.1:99"] != "192.0.2.1:99" {
		t.Errorf("%d ended; seen: %v", n, seen)
	}
	clear(seen)
	if n := count("192.0.2.77:53"); n != 0 || len(seen) != 1 {
		t.Errorf("then %d ended; seen: %v", n, seen)
	}
}
