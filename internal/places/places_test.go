package places

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"
)

func client(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}) }

// TestShares: greedy clients leave room for those who come later.
func TestShares(t *testing.T) {
	p := New(100, 4, nil)
	var got []int
	for i := range 12 {
		n := 0
		for p.Take(client(i)) {
			n++
		}
		got = append(got, n)
	}
	if got[0] != 33 || p.Taken() != 100 {
		t.Errorf("the first has %d of 100, %d are taken: %v", got[0], p.Taken(), got)
	}
	for i, n := range got[:8] {
		if n < 4 {
			t.Errorf("client %d has %d places: %v", i, n, got)
		}
	}
	p.Leave(client(0))
	if !p.Take(client(20)) {
		t.Error("a place that was given back is not free")
	}
}

// TestNeverMore takes and leaves at random: never more than there are, and all come back.
func TestNeverMore(t *testing.T) {
	p := New(50, 3, nil)
	var have []netip.Addr
	for range 20000 {
		if rand.IntN(5) < 3 {
			if c := client(rand.IntN(30)); p.Take(c) {
				have = append(have, c)
			}
		} else if len(have) > 0 {
			i := rand.IntN(len(have))
			p.Leave(have[i])
			have = append(have[:i], have[i+1:]...)
		}
		if p.Taken() != len(have) || len(have) > 50 {
			t.Fatalf("%d taken, %d given", p.Taken(), len(have))
		}
	}
	for _, c := range have {
		p.Leave(c)
	}
	if p.Taken() != 0 || len(p.held) != 0 {
		t.Errorf("%d taken, %d clients at the end", p.Taken(), len(p.held))
	}
}

// TestListen: a connection too many is reset, and one that is closed makes room.
func TestListen(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := make(chan netip.Addr, 1)
	p := New(100, 1, func(c netip.Addr) { refused <- c })
	p.taken = 97 // by others: one may have one
	accepted := make(chan net.Conn, 2)
	places := p.Listen(l)
	defer places.Close()
	go func() {
		for {
			c, err := places.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		if errors.Is(err, syscall.ECONNRESET) { // it was refused at once
			return nil
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	dial()
	one := <-accepted
	two := dial()
	if from := <-refused; from != netip.MustParseAddr("127.0.0.1") {
		t.Errorf("refused: %s", from)
	}
	if two != nil {
		two.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := two.Read(make([]byte, 1)); err == nil || err == io.EOF {
			t.Errorf("one that was refused reads: %v", err)
		}
	}
	one.Close()
	one.Close()
	if p.Taken() != 97 {
		t.Errorf("%d taken", p.Taken())
	}
	dial()
	(<-accepted).Close()
}
