package hostports

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// udpIdle is after how long without a datagram the socket for a client of a UDP port is closed.
const udpIdle = 2 * time.Minute

// maxUDPClients bounds the clients of one UDP port; datagrams of further clients are dropped.
const maxUDPClients = 128

// relay forwards one host port on loopback to a pod, in user space. It ends with the daemon; the next start makes a
// new one.
type relay struct {
	closed chan struct{}
	once   sync.Once
	listen io.Closer
}

// newRelay listens on a loopback address. SCTP is not supported there.
func newRelay(protocol byte, at, to netip.AddrPort, log *slog.Logger) (*relay, error) {
	r := &relay{closed: make(chan struct{})}
	switch protocol {
	case unix.IPPROTO_TCP:
		l, err := net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(at))
		if err != nil {
			return nil, err
		}
		r.listen = l
		go r.tcp(l, to)
	case unix.IPPROTO_UDP:
		c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(at))
		if err != nil {
			return nil, err
		}
		r.listen = c
		go r.udp(c, to, log)
	default:
		return nil, nil
	}
	return r, nil
}

func (r *relay) close() {
	r.once.Do(func() {
		close(r.closed)
		r.listen.Close()
	})
}

func (r *relay) tcp(l *net.TCPListener, to netip.AddrPort) {
	for {
		c, err := l.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of file descriptors, for example
			select {
			case <-time.After(100 * time.Millisecond):
				continue
			case <-r.closed:
				return
			}
		}
		go r.join(c, to)
	}
}

// join copies in both directions until both have ended; a half-close is passed on.
func (r *relay) join(in *net.TCPConn, to netip.AddrPort) {
	defer in.Close()
	c, err := net.DialTimeout("tcp4", to.String(), 10*time.Second)
	if err != nil {
		_ = in.SetLinger(0) // refused, as the pod would
		return
	}
	out := c.(*net.TCPConn)
	defer out.Close()
	done := make(chan struct{}, 2)
	half := func(dst, src *net.TCPConn) {
		_, _ = io.Copy(dst, src)
		_ = dst.CloseWrite()
		done <- struct{}{}
	}
	go half(out, in)
	go half(in, out)
	for range 2 {
		select {
		case <-done:
		case <-r.closed:
			return
		}
	}
}

// udp keeps one socket to the pod per client, so that answers reach the right client.
func (r *relay) udp(c *net.UDPConn, to netip.AddrPort, log *slog.Logger) {
	var mu sync.Mutex
	clients := map[netip.AddrPort]*net.UDPConn{}
	defer func() {
		mu.Lock()
		defer mu.Unlock()
		for _, out := range clients {
			out.Close()
		}
	}()
	buf := make([]byte, 64<<10)
	for {
		n, from, err := c.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // the error of an earlier answer that could not be delivered
		}
		mu.Lock()
		out, known := clients[from]
		if !known && len(clients) < maxUDPClients {
			if out, err = net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(to)); err != nil {
				log.Debug("a datagram for a host port is lost", "error", err)
				mu.Unlock()
				continue
			}
			clients[from] = out
			go func() {
				answers(c, out, from)
				mu.Lock()
				defer mu.Unlock()
				delete(clients, from)
				out.Close()
			}()
		}
		if out != nil {
			_ = out.SetReadDeadline(time.Now().Add(udpIdle))
			_, _ = out.Write(buf[:n])
		}
		mu.Unlock()
	}
}

// answers passes a pod's datagrams to a client until there are none for udpIdle.
func answers(c, out *net.UDPConn, to netip.AddrPort) {
	buf := make([]byte, 64<<10)
	for {
		n, err := out.Read(buf)
		if errors.Is(err, unix.ECONNREFUSED) {
			continue // the pod does not listen yet
		}
		if err != nil {
			return
		}
		if _, err := c.WriteToUDPAddrPort(buf[:n], to); err != nil {
			return
		}
	}
}
