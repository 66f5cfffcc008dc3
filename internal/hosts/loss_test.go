package hosts_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
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
		if i%100 == 99 { // before the socket is full
			receive(10 * time.Millisecond)
		}
	}
	receive(patience)
	return arrived
}

// Two hosts that are parted reach everybody but each other, and Heal of one ends it.
func TestPart(t *testing.T) {
	lab := newLab(t)
	on := map[*hosts.Host]*endpoint{}
	var all []*hosts.Host
	for i, name := range []string{"a", "b", "c"} {
		h, err := lab.Add(name, 1+i%2) // b is behind the router
		if err != nil {
			t.Fatal(err)
		}
		all, on[h] = append(all, h), packets(t, h)
	}
	a, b, c := all[0], all[1], all[2]
	type pair [2]*hosts.Host
	for _, step := range []struct {
		what   string
		do     func() error
		parted []pair
	}{
		{"nobody is parted", func() error { return nil }, nil},
		{"a and b are parted", func() error { return a.Part(b) }, []pair{{a, b}}},
		{"a and c, too", func() error { return c.Part(a) }, []pair{{a, b}, {a, c}}},
		{"b is healed", b.Heal, []pair{{a, c}}},
		{"a is healed", a.Heal, nil},
	} {
		if err := step.do(); err != nil {
			t.Fatal(step.what, err)
		}
		for _, from := range all {
			for _, to := range all {
				if from == to {
					continue
				}
				if slices.Contains(step.parted, pair{from, to}) || slices.Contains(step.parted, pair{to, from}) {
					if n := on[from].send(t, on[to], 20, 20, 100*time.Millisecond); n != 0 {
						t.Errorf("%s: %d packets from %s to %s arrive", step.what, n, from.Name, to.Name)
					}
				} else {
					on[from].find(t, on[to])
				}
			}
		}
	}
	if err := a.Part(a); err == nil {
		t.Error("parted from itself")
	}
}

// A delayed host's packets take so much longer in each direction, and all of what is sent arrives as it was, also where the
// kernel leaves checksums and the division of large packets to the device.
func TestDelay(t *testing.T) {
	lab := newLab(t)
	a, err := lab.Add("a", 1)
	if err != nil {
		t.Fatal(err)
	}
	b, err := lab.Add("b", 2)
	if err != nil {
		t.Fatal(err)
	}
	onA, onB := packets(t, a), packets(t, b)
	const delay = 40 * time.Millisecond
	if err := a.Delay(delay); err != nil {
		t.Fatal(err)
	}
	for _, way := range [][2]*endpoint{{onA, onB}, {onB, onA}} {
		way[0].find(t, way[1])
		for { // what find has sent more than once
			if _, err := way[1].read(t, 2*delay); err != nil {
				break
			}
		}
		began := time.Now()
		way[0].write(t, way[1], counted)
		if _, err := way[1].read(t, 10*time.Second); err != nil || time.Since(began) < delay {
			t.Errorf("it took %s, with a delay of %s: %v", time.Since(began), delay, err)
		}
	}
	if err := a.Delay(time.Millisecond); err != nil {
		t.Fatal(err)
	}
	content := make([]byte, 4<<20)
	for i := range content {
		content[i] = byte(i * i >> 8)
	}
	l, err := b.Listen(netip.AddrPortFrom(b.Address, 4001).String())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	echoed := make(chan error, 1)
	go func() { // b sends back what it gets
		c, err := l.Accept()
		if err == nil {
			_, err = io.Copy(c, c)
			c.Close()
		}
		echoed <- err
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := a.Dial(ctx, l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go func() {
		c.Write(content)              //nolint:errcheck // what is read back tells
		c.(*net.TCPConn).CloseWrite() //nolint:errcheck // as above
	}()
	got, err := io.ReadAll(c)
	if err := errors.Join(err, <-echoed); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d of %d bytes came back, and %v", len(got), len(content), err)
	}
	if err := a.Lose(hosts.From, 100); err != nil { // it is the wire's end that is in the bridge now
		t.Fatal(err)
	}
	if n := onA.send(t, onB, 20, 20, 100*time.Millisecond); n != 0 {
		t.Errorf("%d packets of a host that is cut off arrive", n)
	}
	if err := a.Heal(); err != nil {
		t.Fatal(err)
	}
	onA.find(t, onB)
}
