package balancer

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// dialTimeout is how long an upstream may take to accept a connection.
	dialTimeout = time.Second
	// nextAfter is how long one upstream is waited for before the next one is dialled too.
	nextAfter = 200 * time.Millisecond
	// avoidFor is how long an upstream that has failed is tried last.
	avoidFor = 10 * time.Second
	// uselessFor is for how long Avoid does not go back to one that has failed: for more than two heartbeats of a node, and
	// less than the silence after which it counts as lost.
	uselessFor = 25 * time.Second
	// lostAfter is how long an upstream may acknowledge nothing before its connections end: in six seconds TCP repeats
	// a packet five times, so a link that loses half of them keeps its connections, and a master whose link is cut is
	// noticed before the node's next heartbeat is due. To end one too early costs little: the client connects again.
	//
	// An idle connection is asked after three seconds, by the kernel, and then each second, so that it ends as soon, but
	// not for a single lost packet.
	lostAfter  = 6 * time.Second
	askAfter   = 3 * time.Second
	askedEvery = time.Second
)

var dialer = net.Dialer{Timeout: dialTimeout,
	KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: askAfter, Interval: askedEvery, Count: int((lostAfter - askAfter) / askedEvery)},
	Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		return errors.Join(c.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(lostAfter.Milliseconds()))
		}), err)
	}}

// order is in which order the upstreams are dialled: from the one whose turn it is, after these those that have failed
// lately, the earliest failure first, and at last the last resort.
func order(list []*upstream, turn int, resort *upstream, now time.Time) []*upstream {
	var well, failed []*upstream
	for i := range list {
		if u := list[(turn+i)%len(list)]; u.failed.IsZero() || now.Sub(u.failed) >= avoidFor {
			well = append(well, u)
		} else {
			failed = append(failed, u)
		}
	}
	slices.SortStableFunc(failed, func(a, b *upstream) int { return a.failed.Compare(b.failed) })
	all := append(well, failed...)
	if resort != nil && !slices.Contains(list, resort) {
		all = append(all, resort)
	}
	return all
}

var errNone = errors.New("there is no upstream")

// dial connects to an upstream, and enters the connection under it. The error says what each upstream's was.
func (b *Balancer) dial(ctx context.Context, client *net.TCPConn) (*relay, error) {
	for {
		b.mu.Lock()
		candidates := order(b.list, b.turn, b.resort, time.Now())
		b.mu.Unlock()
		u, conn, err := b.race(ctx, candidates)
		if err != nil {
			return nil, err
		}
		r := &relay{balancer: b, upstream: u, client: client, server: conn, began: time.Now()}
		switch b.enter(r) {
		case entered:
			return r, nil
		case tooLate:
			conn.Close() //nolint:errcheck // nothing was sent
			return nil, net.ErrClosed
		}
		conn.Close() //nolint:errcheck // as above; the upstream has left meanwhile
	}
}

type outcome struct {
	from *upstream
	conn *net.TCPConn
	err  error
}

// race dials one candidate after the other, without giving up those that have not answered, and returns the first
// connection.
func (b *Balancer) race(ctx context.Context, candidates []*upstream) (*upstream, *net.TCPConn, error) {
	ctx, cancel := context.WithCancel(ctx)
	outcomes := make(chan outcome, len(candidates)) // nobody who dials has to wait
	started, ended := 0, 0
	start := func() {
		u := candidates[started]
		started++
		go func() {
			conn, err := dialTCP(ctx, u.address)
			outcomes <- outcome{u, conn, err}
		}()
	}
	defer func() { // those that come later are not needed
		cancel()
		for ; ended < started; ended++ {
			if o := <-outcomes; o.conn != nil {
				o.conn.Close() //nolint:errcheck // nothing was sent
			}
		}
	}()
	if len(candidates) == 0 {
		return nil, nil, errNone
	}
	start()
	next := time.NewTimer(nextAfter)
	defer next.Stop()
	var errs []string
	for {
		select {
		case o := <-outcomes:
			ended++
			if o.err == nil {
				return o.from, o.conn, nil
			}
			if ctx.Err() != nil {
				return nil, nil, ctx.Err()
			}
			b.hasFailed(o.from)
			errs = append(errs, o.err.Error())
			if ended == len(candidates) {
				return nil, nil, errors.New(strings.Join(errs, "; "))
			}
		case <-next.C:
		}
		if started < len(candidates) {
			start()
			next.Reset(nextAfter)
		}
	}
}

func dialTCP(ctx context.Context, address string) (*net.TCPConn, error) {
	c, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// hasFailed has an upstream tried last for a while.
func (b *Balancer) hasFailed(u *upstream) {
	b.mu.Lock()
	defer b.mu.Unlock()
	u.failed = time.Now()
}

// answered notes that an upstream works: it is the one to use now, unless it is only the last resort.
func (b *Balancer) answered(u *upstream) {
	b.mu.Lock()
	defer b.mu.Unlock()
	u.failed = time.Time{}
	if at := slices.Index(b.list, u); at >= 0 && at != b.turn {
		b.log.Info("connections go to another upstream now", "from", b.list[b.turn].address, "to", u.address)
		b.turn = at
	}
}

// entry is what became of a new connection.
type entry int

const (
	entered  entry = iota
	departed       // its upstream has left the set
	tooLate        // the balancer has ended
)

func (b *Balancer) enter(r *relay) entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return tooLate
	case r.upstream.gone:
		return departed
	}
	r.upstream.relays[r] = struct{}{}
	return entered
}

func (b *Balancer) leave(r *relay) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(r.upstream.relays, r)
}

// reached notes whether anybody could be reached, and logs when that changes.
func (b *Balancer) reached(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if lost := err != nil; lost != b.lost {
		if b.lost = lost; lost {
			b.log.Warn("none of the upstreams can be reached: connections are closed until one can", "error", err)
			return
		}
		b.log.Info("an upstream can be reached again")
	}
}
