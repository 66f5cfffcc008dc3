package hosts_test

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"minik8s/internal/hosts"
)

// Each direction is cut or loses packets for itself, and Heal ends both.
func TestLoss(t *testing.T) {
	lab := newLab(t)
	a, err := lab.Add("a", 1)
	if err != nil {
		t.Fatal(err)
	}
	b, err := lab.Add("b", 2) // the router's packets are lost, too
	if err != nil {
		t.Fatal(err)
	}
	onA, onB := packets(t, a), packets(t, b)
	const sent = 1000
	for _, c := range []struct {
		what       string
		do         func() error
		fromA, toA int // percent that arrive
		exactly    bool
	}{
		{"nothing", func() error { return nil }, 100, 100, true},
		{"from", func() error { return a.Lose(hosts.From, 100) }, 0, 100, true},
		{"to", func() error { return a.Lose(hosts.To, 100) }, 100, 0, true},
		{"30% both", func() error { return a.Lose(hosts.Both, 30) }, 70, 70, false},
		{"60% to", func() error { return a.Lose(hosts.To, 60) }, 100, 40, false},
		{"cut", a.Cut, 0, 0, true},
		{"healed", a.Heal, 100, 100, true},
	} {
		if err := c.do(); err != nil {
			t.Fatal(c.what, err)
		}
		for _, way := range []struct {
			name     string
			from, to *endpoint
			want     int
		}{{"from a", onA, onB, c.fromA}, {"to a", onB, onA, c.toA}} {
			got, slack := way.from.send(t, way.to, sent), sent/10 // six standard deviations
			if c.exactly || way.want == 100 {
				slack = 0
			}
			if want := sent * way.want / 100; got < want-slack || got > want+slack {
				t.Errorf("%s: of %d packets %s %d arrived, not about %d", c.what, sent, way.name, got, want)
			}
		}
	}
	if err := a.Lose(hosts.Both, 101); err == nil {
		t.Error("101% were lost")
	}
}

type endpoint struct {
	net.PacketConn
	at netip.AddrPort
}

func packets(t *testing.T, h *hosts.Host) *endpoint {
	t.Helper()
	at := netip.AddrPortFrom(h.Address, 4000)
	c, err := h.Packets(at.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &endpoint{c, at}
}

// send counts how many of n packets arrive. The network keeps their order, and loses none for want of room.
func (e *endpoint) send(t *testing.T, to *endpoint, n int) (arrived int) {
	t.Helper()
	buf := make([]byte, 1)
	read := func(patience time.Duration) bool {
		if err := to.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		_, _, err := to.ReadFrom(buf)
		return err == nil
	}
	for i := range n {
		if _, err := e.WriteTo([]byte{0}, net.UDPAddrFromAddrPort(to.at)); err != nil {
			t.Fatal(err)
		}
		if i%50 == 49 { // before the socket is full
			for read(20 * time.Millisecond) {
				arrived++
			}
		}
	}
	return arrived
}
