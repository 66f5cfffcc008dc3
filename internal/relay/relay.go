package relay

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

// maxUDPClients bounds the clients of one UDP port. A further one takes the place of the one that has been silent for longest:
// who asks each question from another port, as a resolver does, has his answer long before.
const maxUDPClients = 128

// Relay forwards one port to targets.
type Relay struct {
	closed chan struct{}
	once   sync.Once
	listen io.Closer

	mu      sync.Mutex
	clients map[netip.AddrPort]*udpClient
}

// udpClient is a client of a UDP port, and the socket by which its datagrams go to its target.
type udpClient struct {
	out  *net.UDPConn
	to   netip.AddrPort
	last time.Time
}

// Target is where the next connection, or the next client's datagrams, go; false: nowhere now.
type Target func() (netip.AddrPort, bool)

// To is a Target that is always the same.
func To(at netip.AddrPort) Target { return func() (netip.AddrPort, bool) { return at, true } }

// Listen starts to forward a port of this host, by TCP or UDP, until Close. For another protocol there is no Relay, which is
// no error.
func Listen(protocol byte, at netip.AddrPort, to Target, log *slog.Logger) (*Relay, error) {
	r := &Relay{closed: make(chan struct{}), clients: map[netip.AddrPort]*udpClient{}}
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

// Close ends the forwarding, and the connections.
func (r *Relay) Close() {
	r.once.Do(func() {
		close(r.closed)
		r.listen.Close()
	})
}

// Keep says which targets are still to be had: a UDP client of another one gets a new target with its next datagram. TCP
// connections stay where they are until their ends close them.
func (r *Relay) Keep(still func(netip.AddrPort) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for from, c := range r.clients {
		if !still(c.to) {
			r.drop(from, c)
		}
	}
}

// drop ends what a client has, if it still has that. The caller holds mu.
func (r *Relay) drop(from netip.AddrPort, c *udpClient) {
	if r.clients[from] == c {
		delete(r.clients, from)
	}
	c.out.Close() //nolint:errcheck // a socket without a peer
}

func (r *Relay) tcp(l *net.TCPListener, to Target) {
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
func (r *Relay) join(in *net.TCPConn, to Target) {
	defer in.Close()
	at, ok := to()
	if !ok {
		_ = in.SetLinger(0)
		return
	}
	c, err := net.DialTimeout("tcp4", at.String(), 10*time.Second)
	if err != nil {
		_ = in.SetLinger(0) // refused, as the target would
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

// udp keeps one socket to its target per client, so that answers reach the right client.
func (r *Relay) udp(c *net.UDPConn, to Target, log *slog.Logger) {
	defer r.Keep(func(netip.AddrPort) bool { return false })
	buf := make([]byte, 64<<10)
	for {
		n, from, err := c.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // the error of an earlier answer that could not be delivered
		}
		if err := r.pass(c, from, buf[:n], to); err != nil {
			log.Debug("a datagram for a forwarded port is lost", "error", err)
		}
	}
}

// pass sends a client's datagram to its target.
func (r *Relay) pass(c *net.UDPConn, from netip.AddrPort, datagram []byte, to Target) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	client := r.clients[from]
	if client == nil {
		at, ok := to()
		if !ok {
			return nil
		}
		out, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(at))
		if err != nil {
			return err
		}
		if len(r.clients) >= maxUDPClients {
			r.dropOldest()
		}
		client = &udpClient{out: out, to: at}
		r.clients[from] = client
		go func() {
			answers(c, out, from)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.drop(from, client)
		}()
	}
	client.last = time.Now()
	_ = client.out.SetReadDeadline(client.last.Add(udpIdle))
	_, _ = client.out.Write(datagram) // a target that is not there yet is no error of this one
	return nil
}

// dropOldest ends what the client has that was silent for longest. The caller holds mu.
func (r *Relay) dropOldest() {
	var oldest netip.AddrPort
	for from, c := range r.clients {
		if o := r.clients[oldest]; o == nil || c.last.Before(o.last) {
			oldest = from
		}
	}
	r.drop(oldest, r.clients[oldest])
}

// answers passes a target's datagrams to a client until there are none for udpIdle.
func answers(c, out *net.UDPConn, to netip.AddrPort) {
	buf := make([]byte, 64<<10)
	for {
		n, err := out.Read(buf)
		if errors.Is(err, unix.ECONNREFUSED) {
			continue // it does not listen yet
		}
		if err != nil {
			return
		}
		if _, err := c.WriteToUDPAddrPort(buf[:n], to); err != nil {
			return
		}
	}
}
