package idle

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// listen accepts connections and counts those that are open.
func listen(t *testing.T) (address string, open *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() }) //nolint:errcheck // a test's
	open = &atomic.Int64{}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			open.Add(1)
			go func() {
				io.Copy(c, c) //nolint:errcheck // until the other end closes
				c.Close()     //nolint:errcheck // a test's
				open.Add(-1)
			}()
		}
	}()
	return l.Addr().String(), open
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not in time: " + what)
		}
	}
}

func get(t *testing.T, p *Pool, fresh bool) (*Conn, bool) {
	t.Helper()
	c, reused, err := p.Get(context.Background(), fresh)
	if err != nil {
		t.Fatal(err)
	}
	return c, reused
}

// So many connections are kept, for so long; the last one that was used comes first.
func TestKept(t *testing.T) {
	at, open := listen(t)
	p := &Pool{Address: at, Dial: (&net.Dialer{}).DialContext, Most: 2, Time: 30 * time.Millisecond}
	var all []*Conn
	for range 4 {
		c, reused := get(t, p, false)
		if reused {
			t.Error("there was one already")
		}
		all = append(all, c)
	}
	until(t, "all are open", func() bool { return open.Load() == 4 })
	for _, c := range all {
		p.Put(c)
	}
	until(t, "two are kept", func() bool { return open.Load() == 2 })
	if c, reused := get(t, p, false); !reused || c != all[1] || !c.Alive() {
		t.Errorf("reused: %t, alive: %t", reused, c.Alive())
	} else {
		p.Put(c)
	}
	if c, reused := get(t, p, true); reused {
		t.Error("a fresh one was asked for")
	} else {
		c.Close() //nolint:errcheck // a test's
	}
	until(t, "none is kept for long", func() bool { return open.Load() == 0 })
	until(t, "there is no timer", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.timer == nil && len(p.idle) == 0
	})
}

// Once the server is gone nothing is kept, also what comes back later.
func TestClosed(t *testing.T) {
	at, open := listen(t)
	p := &Pool{Address: at, Dial: (&net.Dialer{}).DialContext, Most: 2, Time: time.Minute}
	one, _ := get(t, p, false)
	two, _ := get(t, p, false)
	p.Put(one)
	p.Close()
	p.Put(two)
	until(t, "both are closed", func() bool { return open.Load() == 0 })
	if p.timer != nil {
		t.Error("a timer is set")
	}
}

// A connection is not alive once the server has closed it, or said anything.
func TestAlive(t *testing.T) {
	at, _ := listen(t)
	p := &Pool{Address: at, Dial: (&net.Dialer{}).DialContext, Most: 2, Time: time.Minute}
	defer p.Close()
	c, _ := get(t, p, false)
	if !c.Alive() {
		t.Error("a new one is not")
	}
	if _, err := io.WriteString(c, "x"); err != nil { // it comes back
		t.Fatal(err)
	}
	until(t, "something was said", func() bool { return !c.Alive() })
	if b := make([]byte, 1); c.Alive() {
		t.Error(c.Read(b))
	}
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil || !c.Alive() {
		t.Errorf("once it is read: %v", err)
	}
	if err := errors.Join(c.Conn.(*net.TCPConn).CloseWrite()); err != nil {
		t.Fatal(err)
	}
	until(t, "it is closed", func() bool { return !c.Alive() })
}
