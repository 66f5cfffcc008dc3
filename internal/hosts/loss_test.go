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
	const sent, slack = 1000, 100 // six standard deviations
	for _, c := range []struct {
		what       string
		do         func() error
		fromA, toA int // percent that arrive
	}{
		{"nothing", func() error { return nil }, 100, 100},
		{"from", func() error { return a.Lose(hosts.From, 100) }, 0, 100},
		{"to", func() error { return a.Lose(hosts.To, 100) }, 100, 0},
		{"30% both", func() error { return a.Lose(hosts.Both, 30) }, 70, 70},
		{"60% to", func() error { return a.Lose(hosts.To, 60) }, 100, 40},
		{"cut", a.Cut, 0, 0},
		{"healed", a.Heal, 100, 100},
	} {
		if err := c.do(); err != nil {
			t.Fatal(c.what, err)
		}
		if c.fromA == 100 && c.toA == 100 {
			onA.find(t, onB)
			onB.find(t, onA)
		}
		for _, way := range []struct {
			name     string
			from, to *endpoint
			want     int
		}{{"from a", onA, onB, c.fromA}, {"to a", onB, onA, c.toA}} {
			want := sent * way.want / 100
			if want == sent {
				if got := way.from.send(t, way.to, sent, want, 5*time.Second); got != want {
					t.Errorf("%s: of %d packets %s %d arrived, not %d", c.what, sent, way.name, got, want)
				}
			} else if got := way.from.send(t, way.to, sent, sent, 200*time.Millisecond); want == 0 && got > 0 || got < want-slack || got > want+slack {
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

// What is in a packet that send counts, and in one that it does not.
const (
	counted = iota
	other
)

// find sends until something arrives: while a machine on the way asks for the next one's hardware address, it drops most
// packets.
func (e *endpoint) find(t *testing.T, to *endpoint) {
	t.Helper()
	for range 600 {
		e.write(t, to, other)
		if _, err := to.read(t, 50*time.Millisecond); err == nil {
			return
		}
	}
	t.Fatal("nothing arrives")
}

func (e *endpoint) write(t *testing.T, to *endpoint, content byte) {
	t.Helper()
	if _, err := e.WriteTo([]byte{content}, net.UDPAddrFromAddrPort(to.at)); err != nil {
		t.Fatal(err)
	}
}

func (e *endpoint) read(t *testing.T, patience time.Duration) (content byte, err error) {
	t.Helper()
	if err := e.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 1)
	_, _, err = e.ReadFrom(buf)
	return buf[0], err
}

// send counts how many of n packets arrive. It waits until there are as many as may be on their way, or nothing has come for
// as long as patience: a busy machine delivers late.
func (e *endpoint) send(t *testing.T, to *endpoint, n, most int, patience time.Duration) (arrived int) {
	t.Helper()
	receive := func(patience time.Duration) {
		for arrived < most {
			content, err := to.read(t, patience)
			if err != nil {
				return
			}
			if content == counted {
				arrived++
			}
		}
	}
	for i := range n {
		e.write(t, to, counted)
		if i%50 == 49 { // before the socket is full
			receive(10 * time.Millisecond)
		}
	}
	receive(patience)
	return arrived
}
