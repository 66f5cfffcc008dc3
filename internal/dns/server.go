package dns

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/edns"
	"github.com/coredns/coredns/request"
	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"minik8s/internal/places"
)

const (
	// patience is how long a question waits for others' answer.
	patience = 5 * time.Second
	// connections are how many there are by TCP at a time, perClient what a client gets while there are some left, and idle
	// how long one may be silent.
	connections = 256
	perClient   = 8
	idle        = 8 * time.Second
	// udpSize is the longest question by UDP, in bytes.
	udpSize = 1232
)

// server is what answers at one address.
type server struct {
	servers []*dns.Server
	served  sync.WaitGroup
}

// listen answers at an address, port 53 by UDP and TCP, until close. The machine need not have the address yet.
func listen(at netip.AddrPort, h dns.Handler) (*server, error) {
	early := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var set error
		if err := c.Control(func(fd uintptr) { set = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_FREEBIND, 1) }); err != nil {
			return err
		}
		return set
	}}
	udp, err := early.ListenPacket(context.Background(), "udp4", at.String())
	if err != nil {
		return nil, fmt.Errorf("the cluster's DNS: %w", err)
	}
	tcp, err := early.Listen(context.Background(), "tcp4", udp.LocalAddr().String())
	if err != nil {
		udp.Close() //nolint:errcheck // nothing was written
		return nil, fmt.Errorf("the cluster's DNS: %w", err)
	}
	s := &server{servers: []*dns.Server{
		{PacketConn: udp, Handler: h, UDPSize: udpSize},
		{Listener: places.New(connections, perClient, nil).Listen(tcp), Handler: h, IdleTimeout: func() time.Duration { return idle }},
	}}
	var started sync.WaitGroup
	for _, one := range s.servers {
		started.Add(1)
		one.NotifyStartedFunc = started.Done
		s.served.Go(func() { one.ActivateAndServe() }) //nolint:errcheck // it ends by close
	}
	started.Wait()
	return s, nil
}

// close ends it, after the answers that are being made.
func (s *server) close() {
	for _, one := range s.servers {
		one.Shutdown() //nolint:errcheck // it was started
	}
	s.served.Wait()
}

// handler gives every question an answer, by the chain or, where that has none, that there is none.
type handler struct {
	chain plugin.Handler
	log   *slog.Logger
}

// ServeDNS implements dns.Handler.
func (h *handler) ServeDNS(w dns.ResponseWriter, r *dns.Msg) {
	defer func() {
		if p := recover(); p != nil {
			h.log.Error("a question has met a fault of the DNS", "panic", p, "question", question(r), "stack", string(debug.Stack()))
			refuse(w, r, dns.RcodeServerFailure)
		}
	}()
	switch {
	case r.Opcode != dns.OpcodeQuery:
		refuse(w, r, dns.RcodeNotImplemented)
		return
	case len(r.Question) != 1:
		refuse(w, r, dns.RcodeFormatError)
		return
	case r.Question[0].Qclass != dns.ClassINET, r.Question[0].Qtype == dns.TypeAXFR, r.Question[0].Qtype == dns.TypeIXFR:
		refuse(w, r, dns.RcodeRefused)
		return
	}
	if m, err := edns.Version(r); err != nil { // another version than is known
		w.WriteMsg(m) //nolint:errcheck // the client may be gone
		return
	}
	w = request.NewScrubWriter(r, w)
	if rcode, err := h.chain.ServeDNS(context.Background(), w, r); !plugin.ClientWrite(rcode) {
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			h.log.Debug("a question has no answer", "question", question(r), "error", err)
		}
		refuse(w, r, rcode)
	}
}

// question is what is asked, for messages.
func question(r *dns.Msg) string {
	if r == nil || len(r.Question) == 0 {
		return ""
	}
	return strings.TrimPrefix(r.Question[0].String(), ";")
}

func refuse(w dns.ResponseWriter, r *dns.Msg, rcode int) {
	m := new(dns.Msg)
	m.SetRcode(r, rcode)
	m.RecursionAvailable = true
	w.WriteMsg(m) //nolint:errcheck // the client may be gone
}
