package login

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// Dialer opens the connections; package net's Dialer is one.
type Dialer interface {
	DialContext(ctx context.Context, network, addr string) (net.Conn, error)
}

const (
	// handshakeLimit is how long a host may take until the user is in.
	handshakeLimit = 20 * time.Second
	// aliveEvery is the time between two signs of life over an open connection, as OpenSSH's ServerAliveInterval.
	aliveEvery = 15 * time.Second
	// firstPause and longestPause are between attempts that failed; a refused user waits refusedPause at once.
	firstPause   = time.Second
	longestPause = time.Minute
	refusedPause = 2 * time.Minute
	// refusals is after how many refusals in a row nothing is tried any more: hosts lock out who goes on.
	refusals = 2
	// sessions is how many commands run at a time: a host allows ten sessions of a connection by default, and files take one.
	sessions = 6
)

// Node is a login node. Its methods may be called from any goroutine.
type Node struct {
	target Target
	dialer Dialer
	log    *slog.Logger
	slots  chan struct{}
	limits limits

	mu      sync.Mutex
	link    *link
	opening chan struct{} // closed when an attempt has ended
	failed  error
	pause   time.Duration
	again   time.Time // when the next attempt may be made
	refused int       // in a row
	closed  bool
}

// limits are times that tests shorten.
type limits struct{ command, refused, stall time.Duration }

// New makes a node; it connects when it is first used.
func New(t Target, d Dialer, log *slog.Logger) *Node {
	if d == nil {
		d = &net.Dialer{Timeout: handshakeLimit}
	}
	return &Node{target: t, dialer: d, log: log, slots: make(chan struct{}, sessions), limits: limits{commandLimit, refusedPause, stallLimit}}
}

// Host is the node's host:port.
func (n *Node) Host() string { return n.target.Addr }

// ByPerson reports whether there is a connection that a person has opened, and that nobody else can open again.
func (n *Node) ByPerson() bool { return n.target.interactive() && n.stands() }

// Connect makes sure that there is a connection. Errors: *HostKeyError, *RefusedError, *CredentialError, or that of the
// network. While attempts pause, the last error comes at once.
func (n *Node) Connect(ctx context.Context) error {
	_, err := n.connected(ctx)
	return err
}

// Close ends the connection, and all that runs over it. The node cannot be used afterwards.
func (n *Node) Close() {
	n.mu.Lock()
	n.closed = true
	l := n.link
	n.link = nil
	n.mu.Unlock()
	if l != nil {
		l.close()
	}
}

var errClosed = errors.New("the connection was closed")

func (n *Node) connected(ctx context.Context) (*link, error) {
	for {
		n.mu.Lock()
		switch {
		case n.closed:
			n.mu.Unlock()
			return nil, errClosed
		case n.link != nil && !n.link.broken():
			defer n.mu.Unlock()
			return n.link, nil
		case n.opening != nil:
			wait := n.opening
			n.mu.Unlock()
			select {
			case <-wait:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
			n.mu.Lock()
			if n.link == nil && n.opening == nil && n.failed != nil {
				defer n.mu.Unlock()
				return nil, n.failed
			}
			n.mu.Unlock()
		case n.target.interactive():
			defer n.mu.Unlock()
			return nil, &NeededError{Host: n.target.Addr}
		case n.failed != nil && (n.refused >= refusals || time.Now().Before(n.again)):
			defer n.mu.Unlock()
			return nil, n.failed
		default:
			done := make(chan struct{})
			n.opening = done
			n.mu.Unlock()
			// The attempt is everybody's: it does not end with the one who began it.
			go n.open(done)
		}
	}
}

func (n *Node) open(done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*handshakeLimit)
	defer cancel()
	l, err := dial(ctx, &n.target, n.dialer, nil)
	n.mu.Lock()
	defer n.mu.Unlock()
	defer close(done)
	n.opening = nil
	n.failed = err
	if err != nil {
		n.pause = min(max(2*n.pause, firstPause), longestPause)
		var refused *RefusedError
		if errors.As(err, &refused) {
			n.pause = n.limits.refused
			n.refused++
			refused.Final = n.refused >= refusals
		}
		n.again = time.Now().Add(n.pause)
		return
	}
	if n.closed {
		l.close()
		return
	}
	n.use(l)
}

// use makes a link the node's; mu is held.
func (n *Node) use(l *link) {
	n.pause, n.failed, n.refused, n.link = 0, nil, 0, l
	if l.stall = n.limits.stall; n.target.interactive() { // a person's patience is dearer than a minute of a hanging disk
		l.stall *= 10
	}
	go l.keep(func(err error) {
		n.log.Info("the connection to a login node is lost", "host", n.target.Addr, "error", err)
	})
}

// dial goes through the jump host, if there is one. Without ask no person is asked.
func dial(ctx context.Context, t *Target, d Dialer, ask Ask) (*link, error) {
	var under *link
	if t.Jump != nil {
		var err error
		if under, err = dial(ctx, t.Jump, d, ask); err != nil {
			return nil, err
		}
		d = under.client
	}
	l, err := handshake(ctx, t, d, ask)
	if err != nil {
		if under != nil {
			under.close()
		}
		return nil, err
	}
	l.under = under
	return l, nil
}

// handshake tries the types of host keys in turn, until the host shows one that is known.
func handshake(ctx context.Context, t *Target, d Dialer, ask Ask) (*link, error) {
	methods, err := t.methods(ctx, ask)
	if err != nil {
		return nil, err
	}
	known, err := parsePins(t.HostKeys)
	if err != nil {
		return nil, &CredentialError{"host key: " + err.Error()}
	}
	var shown error
	for _, algorithms := range known.rounds() {
		client, err := attempt(ctx, t, d, &ssh.ClientConfig{User: t.User, Auth: methods, HostKeyCallback: known.check(t.Addr), HostKeyAlgorithms: algorithms})
		if err == nil {
			return &link{client: client, gone: make(chan struct{}), failed: make(chan error, 1)}, nil
		}
		var other *HostKeyError
		var negotiation *ssh.AlgorithmNegotiationError
		switch {
		case errors.As(err, &other):
			shown = other
		case errors.As(err, &negotiation) && len(algorithms) > 0: // it has no key of these types
			if shown == nil {
				shown = &HostKeyError{Host: t.Addr, Known: true}
			}
		case refuses(err):
			return nil, &RefusedError{User: t.User, Host: t.Addr, Methods: tried(t)}
		default:
			return nil, err
		}
	}
	return nil, shown
}

// refuses reports whether an error of the handshake means that the user is not let in. The library has no type for it; the second
// text is a server that refuses keyboard-interactive without asking anything.
func refuses(err error) bool {
	return strings.Contains(err.Error(), "unable to authenticate") || strings.Contains(err.Error(), sentAlready) || strings.Contains(err.Error(), "unexpected message type 51 (expected 60)")
}

func tried(t *Target) string {
	var out []string
	if len(t.Key) > 0 {
		out = append(out, "the key")
	}
	if t.Interactive {
		return strings.Join(append(out, "what was answered"), " and ")
	}
	if t.Password != "" {
		out = append(out, "the password")
	}
	return strings.Join(out, " and ")
}

func attempt(ctx context.Context, t *Target, d Dialer, cfg *ssh.ClientConfig) (*ssh.Client, error) {
	limit := handshakeLimit
	if t.Interactive {
		limit = personLimit
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := d.DialContext(ctx, "tcp", t.Addr)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", t.Addr, err)
	}
	// A connection through a jump host has no deadlines: it is closed.
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	c, chans, reqs, err := ssh.NewClientConn(conn, t.Addr, cfg)
	if !stop() && err == nil {
		c.Close()
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("logging in at %s: %w", t.Addr, err)
	}
	return ssh.NewClient(c, chans, reqs), nil
}
