package network

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const hostAddr = "192.0.2.1" // of the machine that package machine makes

// running is a network as a daemon runs it: set up, kept, and taken down at the end.
func running(t *testing.T, nodePorts ...uint16) *Network {
	t.Helper()
	n := real(t)
	n.cfg.NodePorts = nodePorts
	if err := n.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	kept := make(chan struct{})
	go func() { defer close(kept); n.Keep(ctx) }()
	t.Cleanup(func() {
		stop()
		<-kept
		if err := n.Teardown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return n
}

// pod is a connected network namespace; a runtime's sandbox is no more than that to the network.
type pod struct {
	t    *testing.T
	n    *Network
	id   string
	addr netip.Addr
	ns   *os.File
}

func newPod(t *testing.T, n *Network, name string) *pod {
	t.Helper()
	p := &pod{t: t, n: n, id: fmt.Sprintf("%x", sha256.Sum256([]byte(name)))}
	err := onThread(func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		if p.ns, err = os.Open("/proc/thread-self/ns/net"); err != nil {
			return err
		}
		p.addr, err = n.Connect(p.id)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.remove)
	return p
}

// remove ends the pod. Its listeners have to be closed for the namespace to go.
func (p *pod) remove() {
	if p.ns == nil {
		return
	}
	if err := errors.Join(p.ns.Close(), p.n.Disconnect(p.id, p.addr)); err != nil {
		p.t.Error(err)
	}
	if link, err := p.n.host.LinkByName(p.n.LinkName(p.id)); err == nil {
		_ = p.n.host.LinkDel(link) // or it goes with the namespace, which takes a moment
	}
	p.ns = nil
}

// inside runs f on a thread that is in the pod's namespace. Sockets stay in the one they were made in.
func (p *pod) inside(f func() error) {
	p.t.Helper()
	err := onThread(func() error {
		if err := unix.Setns(int(p.ns.Fd()), unix.CLONE_NEWNET); err != nil {
			return err
		}
		return f()
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// serve answers TCP connections to a port of the pod with a text.
func (p *pod) serve(port uint16, text string) {
	p.t.Helper()
	p.inside(func() error { return listen(p.t, fmt.Sprintf("0.0.0.0:%d", port), text, nil) })
}

// get is what a TCP server says to the pod; empty if it cannot be reached.
func (p *pod) get(addr string, patience time.Duration) (text string) {
	p.t.Helper()
	p.inside(func() error {
		text, _ = get(addr, patience)
		return nil
	})
	return text
}

// ping reports whether an address answers an ICMP echo of the pod.
func (p *pod) ping(addr string) (ok bool) {
	p.t.Helper()
	p.inside(func() error {
		c, err := net.Dial("ip4:icmp", addr)
		if err != nil {
			return err
		}
		defer c.Close()
		echo := []byte{8, 0, 0, 0, 0, 1, 0, 1}
		binary.BigEndian.PutUint16(echo[2:], ^uint16(0x0800+1+1)) // the checksum
		_ = c.SetDeadline(time.Now().Add(5 * time.Second))
		if _, err := c.Write(echo); err != nil {
			return err
		}
		answer := make([]byte, 100)
		n, _, err := c.(*net.IPConn).ReadFromIP(answer)
		ok = err == nil && n >= 8 && answer[0] == 0
		return nil
	})
	return ok
}

// listen answers TCP connections with a text until the test ends; from, if not nil, gets the clients' addresses.
func listen(t *testing.T, addr, text string, from chan<- netip.Addr) error {
	l, err := net.Listen("tcp4", addr)
	if err != nil {
		return err
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if from != nil {
				from <- netip.MustParseAddrPort(c.RemoteAddr().String()).Addr()
			}
			_, _ = io.WriteString(c, text)
			c.Close()
		}
	}()
	return nil
}

// get is what a TCP server says.
func get(addr string, patience time.Duration) (string, error) {
	c, err := net.DialTimeout("tcp4", addr, patience)
	if err != nil {
		return "", err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	data, err := io.ReadAll(c)
	return string(data), err
}

func waitFor(t *testing.T, addr, want string) {
	t.Helper()
	eventually(t, addr+" answers "+want, func() bool {
		got, err := get(addr, time.Second)
		return err == nil && got == want
	})
}

// onThread runs f on a thread that ends with it. The main thread cannot end, and would show its namespace as
// the process's.
func onThread(f func() error) error {
	done := make(chan error, 1)
	var run func()
	run = func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			defer runtime.UnlockOSThread()
			again := make(chan struct{})
			go func() { defer close(again); run() }()
			<-again
			return
		}
		done <- f()
	}
	go run()
	return <-done
}
