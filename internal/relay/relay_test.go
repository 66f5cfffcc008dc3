package relay

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// echo answers each datagram with a name, and counts them.
func echo(t *testing.T, name string) (at netip.AddrPort, heard *atomic.Int32) {
	t.Helper()
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() }) //nolint:errcheck // the test has ended
	heard = new(atomic.Int32)
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := c.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			heard.Add(1)
			c.WriteToUDPAddrPort(append([]byte(name+" "), buf[:n]...), from) //nolint:errcheck // who asks waits
		}
	}()
	return c.LocalAddr().(*net.UDPAddr).AddrPort(), heard
}

// relayed is a relay of a UDP port of loopback.
func relayed(t *testing.T, to Target) (*Relay, *net.UDPAddr) {
	t.Helper()
	free, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	at := free.LocalAddr().(*net.UDPAddr)
	free.Close() //nolint:errcheck // its port is free again
	r, err := Listen(unix.IPPROTO_UDP, at.AddrPort(), to, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r, at
}

// asks sends a datagram until there is an answer.
func asks(t *testing.T, c *net.UDPConn) string {
	t.Helper()
	buf := make([]byte, 1500)
	for range 50 {
		if _, err := c.Write([]byte("?")); err != nil && !errors.Is(err, unix.ECONNREFUSED) {
			t.Fatal(err)
		}
		c.SetReadDeadline(time.Now().Add(200 * time.Millisecond)) //nolint:errcheck // it never fails
		n, err := c.Read(buf)
		if err == nil {
			return string(buf[:n])
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, unix.ECONNREFUSED) {
			t.Fatal(err)
		}
	}
	t.Fatal("no answer")
	return ""
}

func dial(t *testing.T, to *net.UDPAddr) *net.UDPConn {
	t.Helper()
	c, err := net.DialUDP("udp4", nil, to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() }) //nolint:errcheck // the test has ended
	return c
}

// Each question of a resolver comes from another port: all have answers, also after more than a relay remembers.
func TestManyClients(t *testing.T) {
	to, _ := echo(t, "a")
	_, at := relayed(t, To(to))
	first := dial(t, at)
	if got := asks(t, first); got != "a ?" {
		t.Error(got)
	}
	for range 2 * maxUDPClients {
		if got := asks(t, dial(t, at)); got != "a ?" {
			t.Fatal(got)
		}
	}
	if got := asks(t, first); got != "a ?" {
		t.Error("one that was silent meanwhile:", got)
	}
}

// A client that never pauses does not stay with a target that is gone.
func TestTargetGoes(t *testing.T) {
	one, heard := echo(t, "one")
	two, _ := echo(t, "two")
	now := atomic.Pointer[netip.AddrPort]{}
	now.Store(&one)
	r, at := relayed(t, func() (netip.AddrPort, bool) { return *now.Load(), true })
	c := dial(t, at)
	if got := asks(t, c); got != "one ?" {
		t.Error(got)
	}
	r.Keep(func(to netip.AddrPort) bool { return to == one })
	if got := asks(t, c); got != "one ?" {
		t.Error("it moves without a reason:", got)
	}
	now.Store(&two)
	before := heard.Load()
	r.Keep(func(to netip.AddrPort) bool { return to == two })
	if got := asks(t, c); got != "two ?" || heard.Load() != before {
		t.Error("it stays with a target that is gone:", got)
	}
}
