package balancer

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"
)

// Config configures a Balancer. Addresses are HOST:PORT.
type Config struct {
	// Upstreams is the first set.
	Upstreams []string
	// Resort is dialled when no upstream can be reached; empty: there is none. It never becomes the preferred one.
	Resort string
	Log    *slog.Logger
}

// Balancer is a set of upstreams and the connections to them.
type Balancer struct {
	log *slog.Logger

	mu     sync.Mutex
	list   []*upstream
	turn   int       // in list: the upstream that answered last, or that is to be the first
	resort *upstream // nil: there is none; it may be in list too
	lost   bool      // nobody answered the last connection
	closed bool
}

// upstream is a server. Balancer.mu guards it.
type upstream struct {
	address string
	failed  time.Time // when it last failed; zero: it has answered since
	gone    bool      // it has left the set
	relays  map[*relay]struct{}
}

func newUpstream(address string) *upstream {
	return &upstream{address: address, relays: map[*relay]struct{}{}}
}

// New makes a Balancer.
func New(cfg Config) *Balancer {
	b := &Balancer{log: cfg.Log}
	if cfg.Resort != "" {
		b.resort = newUpstream(cfg.Resort)
	}
	b.Set(cfg.Upstreams)
	return b
}

// Set replaces the set of upstreams, in the order of their turns. Connections to those that are not in it are closed. Those to
// the last resort are closed when the set changes, but not when it is the first one: then nothing is wrong with them.
func (b *Balancer) Set(addresses []string) {
	for _, r := range b.replace(addresses) {
		r.close()
	}
}

// replace replaces the set and returns the connections to close.
func (b *Balancer) replace(addresses []string) (leaving []*relay) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := map[string]*upstream{}
	for _, u := range b.list {
		known[u.address] = u
	}
	if b.resort != nil {
		known[b.resort.address] = b.resort
	}
	var next []*upstream
	for _, a := range addresses {
		u := known[a]
		if u == nil {
			u = newUpstream(a)
			known[a] = u
		}
		if !slices.Contains(next, u) {
			next = append(next, u)
		}
	}
	if slices.Equal(next, b.list) {
		return nil
	}
	for _, u := range known {
		if slices.Contains(next, u) || u == b.resort && len(b.list) == 0 {
			continue
		}
		u.gone = u != b.resort
		for r := range u.relays {
			leaving = append(leaving, r)
		}
	}
	b.turn = turnAfter(b.list, b.turn, next)
	b.list = next
	return leaving
}

// turnAfter is whose turn it is in the next list: the one whose it was, or else the first after it that has stayed. If none
// has, it is random.
func turnAfter(list []*upstream, turn int, next []*upstream) int {
	for i := range list {
		if at := slices.Index(next, list[(turn+i)%len(list)]); at >= 0 {
			return at
		}
	}
	return rand.IntN(max(1, len(next)))
}

// Avoid says that the upstream whose turn it is answers, and is of no use: a master that has lost the others. It is tried
// last for a while, and its connections are closed, so that clients move. It is kept if there is none that has not failed
// lately: when no master is of use, to go from one to the next helps nobody.
func (b *Balancer) Avoid() {
	for _, r := range b.avoid() {
		r.close()
	}
}

func (b *Balancer) avoid() (leaving []*relay) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.list) == 0 {
		return nil
	}
	u, now := b.list[b.turn], time.Now()
	next := b.turn
	for i := 1; i < len(b.list) && next == b.turn; i++ {
		if at := (b.turn + i) % len(b.list); now.Sub(b.list[at].failed) >= uselessFor {
			next = at
		}
	}
	if next == b.turn {
		return nil
	}
	u.failed, b.turn = now, next
	b.log.Info("an upstream answers, but does not do what it is for: connections go to another now", "from", u.address, "to", b.list[b.turn].address)
	for r := range u.relays {
		leaving = append(leaving, r)
	}
	return leaving
}

// Upstreams is the present set.
func (b *Balancer) Upstreams() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]string, 0, len(b.list))
	for _, u := range b.list {
		out = append(out, u.address)
	}
	return out
}

const (
	minPause = 5 * time.Millisecond
	maxPause = time.Second
)

// Serve accepts connections until ctx ends, and then closes l and all connections. The error is that of l. It may be called
// once.
func (b *Balancer) Serve(ctx context.Context, l *net.TCPListener) error {
	var relays sync.WaitGroup
	defer relays.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(ctx, func() {
		l.Close() //nolint:errcheck // nothing can be done
		b.Close()
	})()
	for pause := minPause; ; {
		c, err := l.AcceptTCP()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				c.Close() //nolint:errcheck // nothing was sent
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil: // as when there are too many open files
			b.log.Warn("a connection could not be accepted, trying again", "error", err, "in", pause)
			if !sleep(ctx, pause) {
				return nil
			}
			pause = min(2*pause, maxPause)
			continue
		}
		pause = minPause
		relays.Go(func() { b.Relay(ctx, c) })
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Close closes all connections, and those that come later.
func (b *Balancer) Close() {
	b.mu.Lock()
	b.closed = true
	var open []*relay
	for _, u := range b.all() {
		for r := range u.relays {
			open = append(open, r)
		}
	}
	b.mu.Unlock()
	for _, r := range open {
		r.close()
	}
}

// all are the upstreams with the last resort; mu is held.
func (b *Balancer) all() []*upstream {
	if b.resort == nil || slices.Contains(b.list, b.resort) {
		return b.list
	}
	return append(slices.Clone(b.list), b.resort)
}
