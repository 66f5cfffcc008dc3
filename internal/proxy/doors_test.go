package proxy

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"minik8s/internal/proxy/plan"
)

// A node port that another program has on loopback is forwarded as soon as that has let it go, and so is a port for health checks.
func TestDoorsAreTriedAgain(t *testing.T) {
	listen := func(at string) net.Listener {
		t.Helper()
		l, err := net.Listen("tcp4", at)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	backend := listen("127.0.0.1:0")
	defer backend.Close() //nolint:errcheck // a test
	go func() {
		for {
			c, err := backend.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, "backend") //nolint:errcheck // the other end would say
			c.Close()                    //nolint:errcheck // as above
		}
	}()
	other, health := listen("127.0.0.1:0"), listen("0.0.0.0:0")
	portOf := func(l net.Listener) uint16 { return uint16(l.Addr().(*net.TCPAddr).Port) }
	d := newDoors(slog.New(slog.NewTextHandler(t.Output(), nil)))
	defer d.close()
	d.follow(map[types.NamespacedName]*entry{{Namespace: "default", Name: "web"}: {plan: plan.Service{HealthPort: portOf(health), Local: 1,
		Ports: []plan.Port{{Name: "web", Protocol: unix.IPPROTO_TCP, NodePort: portOf(other), Endpoints: []netip.AddrPort{netip.MustParseAddrPort(backend.Addr().String())}}}}}})
	at, checked := other.Addr().String(), health.Addr().(*net.TCPAddr).AddrPort().Port()
	other.Close()  //nolint:errcheck // a test
	health.Close() //nolint:errcheck // a test
	says := func(at, ask string) string {
		c, err := net.DialTimeout("tcp4", at, time.Second)
		if err != nil {
			return err.Error()
		}
		defer c.Close()                                //nolint:errcheck // a test
		c.SetDeadline(time.Now().Add(2 * time.Second)) //nolint:errcheck // a test
		io.WriteString(c, ask)                         //nolint:errcheck // it says nothing then
		text, _ := io.ReadAll(io.LimitReader(c, 1000)) //nolint:errcheck // what came counts
		return string(text)
	}
	want := func(what string, ok func() (string, bool)) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			said, is := ok()
			if is {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s: %s", what, said)
			}
		}
	}
	want("the node port", func() (string, bool) { s := says(at, ""); return s, s == "backend" })
	want("the health port", func() (string, bool) {
		s := says(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), checked).String(), "GET / HTTP/1.0\r\n\r\n")
		return s, strings.Contains(s, `"localEndpoints":1`)
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.later != nil {
		t.Error("all are open, and it is tried again")
	}
}

// A node port of SCTP is not forwarded on loopback, and nothing tries that again and again.
func TestNoRelayForSCTP(t *testing.T) {
	var said bytes.Buffer
	d := newDoors(slog.New(slog.NewTextHandler(&said, nil)))
	defer d.close()
	d.follow(map[types.NamespacedName]*entry{{Namespace: "default", Name: "s"}: {plan: plan.Service{Ports: []plan.Port{{Protocol: unix.IPPROTO_SCTP, NodePort: 30132}}}}})
	if len(d.relays) != 0 || d.later != nil || said.Len() > 0 {
		t.Errorf("%d relays, a timer %v, said %s", len(d.relays), d.later != nil, &said)
	}
}
