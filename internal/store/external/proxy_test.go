package external_test

import (
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// proxy is the way to an etcd, on which answers may be lost and that may be closed.
type proxy struct {
	l      net.Listener
	to     string
	mute   atomic.Bool // nothing comes back
	closed atomic.Bool // nobody gets through
	// forwarded is told when a request went through without its answer.
	forwarded chan struct{}
	mu        sync.Mutex
	conns     []net.Conn
}

func newProxy(t *testing.T, url string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{l: l, to: strings.TrimPrefix(url, "https://"), forwarded: make(chan struct{}, 1)}
	t.Cleanup(func() { l.Close(); p.cut() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return p
}

func (p *proxy) url() string { return "https://" + p.l.Addr().String() }

func (p *proxy) serve(c net.Conn) {
	defer c.Close()
	if p.closed.Load() {
		return
	}
	s, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer s.Close()
	p.mu.Lock()
	p.conns = append(p.conns, c, s)
	p.mu.Unlock()
	go io.Copy(s, c) //nolint:errcheck // it ends with either
	buf := make([]byte, 64<<10)
	for {
		n, err := s.Read(buf)
		if err != nil {
			return
		}
		if p.mute.Load() {
			select {
			case p.forwarded <- struct{}{}:
			default:
			}
			continue
		}
		if _, err := c.Write(buf[:n]); err != nil {
			return
		}
	}
}

// cut ends all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}
