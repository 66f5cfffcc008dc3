package plain

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"minik8s/internal/gateway/backends"
	"minik8s/internal/gateway/routes"
	"minik8s/internal/idle"
)

// Config is what a Server is made from. All is needed.
type Config struct {
	// Find is the route of a request, and the pool that it leads to; nil: none. It keeps neither host nor path.
	Find func(at netip.Addr, host, path string) (*routes.Route, *backends.Pool)
	// Hand takes a connection over. What has been read of it comes first; NetConn is the connection that Serve was given.
	Hand func(net.Conn)
	// Dial connects to an endpoint.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	HeadTime time.Duration // for a request's head
	IdleTime time.Duration // between requests
	// ReachTime is for all dials of a request.
	ReachTime time.Duration
	// AnswerTime is for the head of an answer, from the request on.
	AnswerTime time.Duration
	// KeepTime is for how long, and KeepEach how many, connections to an endpoint wait for the next request.
	KeepTime time.Duration
	KeepEach int
	Log      *slog.Logger
}

// Server serves plain requests.
type Server struct {
	cfg      Config
	stopping atomic.Bool
}

// New makes a Server.
func New(cfg Config) *Server { return &Server{cfg: cfg} }

// Upstreams makes what the Server keeps for an endpoint, its connections: whoever makes the endpoint keeps it there.
func (s *Server) Upstreams(address string) *idle.Pool {
	return &idle.Pool{Address: address, Dial: s.cfg.Dial, Most: s.cfg.KeepEach, Time: s.cfg.KeepTime}
}

// Stop says that the answers that are under way are the last of their connections. Who waits for a request is woken by a
// deadline in the past, which is the caller's to set after that.
func (s *Server) Stop() { s.stopping.Store(true) }

// handed is a connection of which something has been read already.
type handed struct {
	net.Conn
	read []byte
}

// NetConn is the connection itself.
func (h *handed) NetConn() net.Conn { return h.Conn }

func (h *handed) Read(p []byte) (int, error) {
	if len(h.read) > 0 {
		n := copy(p, h.read)
		if h.read = h.read[n:]; len(h.read) == 0 {
			h.read = nil
		}
		return n, nil
	}
	return h.Conn.Read(p)
}

// copySize is how much of a body is copied at a time.
const copySize = 32 << 10

var bufferPool = sync.Pool{New: func() any { return new([copySize]byte) }}

// Buffers are those that bodies are copied by.
type Buffers struct{}

// Get is one of copySize bytes.
func (Buffers) Get() []byte { return bufferPool.Get().(*[copySize]byte)[:] }

// Put gives one back.
func (Buffers) Put(b []byte) { bufferPool.Put((*[copySize]byte)(b)) }
