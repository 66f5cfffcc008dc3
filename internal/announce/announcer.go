package announce

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// repeats are how long after an address has become ours neighbours are told again: a packet may be lost, and a switch may just have
// come up.
var repeats = []time.Duration{0, time.Second, 3 * time.Second}

// Hear calls changed when this machine's addresses may have changed, until ctx ends.
type Hear func(ctx context.Context, changed func())

// Announcer answers for addresses. Its methods are safe for concurrent use.
type Announcer struct {
	log  *slog.Logger
	hear Hear

	mu    sync.Mutex
	ours  map[netip.Addr]bool
	links map[int]*link // with a socket, by index
	told  []telling
	ended bool
	wake  chan struct{}
	soon  atomic.Bool // see lookSoon
}

// telling is what is still to be told unasked.
type telling struct {
	at   time.Time
	addr netip.Addr
}

// link is one with neighbours.
type link struct {
	name     string
	own      net.HardwareAddr
	networks []netip.Prefix
	socket   *os.File
}

// New makes an Announcer that answers for nothing. By hear it knows of links that come late, as after a boot, or are made anew.
func New(hear Hear, log *slog.Logger) *Announcer {
	return &Announcer{hear: hear, log: log, ours: map[netip.Addr]bool{}, links: map[int]*link{}, wake: make(chan struct{}, 1)}
}

// Set has it answer for these addresses, and for no others any more. It may be called before Run, too.
func (a *Announcer) Set(addrs []netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for addr := range a.ours {
		if !slices.Contains(addrs, addr) {
			delete(a.ours, addr)
		}
	}
	for _, addr := range addrs {
		if !a.ours[addr] && addr.Is4() {
			a.ours[addr] = true
			for _, after := range repeats {
				a.told = append(a.told, telling{now.Add(after), addr})
			}
		}
	}
	a.look()
}

// look has Run look at links and addresses again.
func (a *Announcer) look() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// settles is how long changes of the machine's links are gathered before they are looked at: each pod's start is one.
const settles = 200 * time.Millisecond

func (a *Announcer) lookSoon() {
	if a.soon.CompareAndSwap(false, true) {
		time.AfterFunc(settles, func() {
			a.soon.Store(false)
			a.look()
		})
	}
}

// Run answers until ctx ends.
func (a *Announcer) Run(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	var reading, beside sync.WaitGroup
	defer beside.Wait()
	defer reading.Wait()
	defer a.close()
	defer stop()
	for reported, following := "", false; ; {
		if !following && a.answers() { // nobody else needs to know of links
			following = true
			beside.Go(func() { a.hear(ctx, a.lookSoon) })
		}
		next, err := a.step(&reading)
		if err != nil && err.Error() != reported {
			reported = err.Error()
			a.log.Error("this machine does not answer for the addresses of load balancers", "error", err)
		}
		if err != nil {
			next = again
		}
		var due <-chan time.Time
		if next > 0 {
			due = time.After(next)
		}
		select {
		case <-due:
		case <-a.wake:
		case <-ctx.Done():
			return
		}
	}
}

// answers reports whether there is an address to answer for.
func (a *Announcer) answers() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.ours) > 0
}

// again is after how long a socket that could not be opened is tried again.
const again = 5 * time.Second

// step opens and closes sockets, tells what is due, and returns when the next is; 0: nothing is.
func (a *Announcer) step(reading *sync.WaitGroup) (next time.Duration, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.openLinks(reading); err != nil {
		return 0, err
	}
	now := time.Now()
	var left []telling
	for _, t := range a.told {
		switch {
		case !a.ours[t.addr]:
		case t.at.After(now):
			left = append(left, t)
			if in := t.at.Sub(now); next == 0 || in < next {
				next = in
			}
		default:
			a.tell(t.addr)
		}
	}
	a.told = left
	return next, nil
}

// tellOn has the neighbours on a link told that is new, or has changed.
func (a *Announcer) tellOn(l *link) {
	now := time.Now()
	for addr := range a.ours {
		if !l.has(addr) || slices.ContainsFunc(a.told, func(t telling) bool { return t.addr == addr }) {
			continue
		}
		for _, after := range repeats {
			a.told = append(a.told, telling{now.Add(after), addr})
		}
	}
}

// tell tells the neighbours unasked. What cannot be sent is told again, or asked for.
func (a *Announcer) tell(addr netip.Addr) {
	for _, l := range a.links {
		if !l.has(addr) {
			continue
		}
		for _, frame := range unasked(addr, l.own) {
			l.socket.Write(frame) //nolint:errcheck // as above
		}
	}
}

func (l *link) has(addr netip.Addr) bool {
	return slices.ContainsFunc(l.networks, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// openLinks has a socket on each link that has a network with one of our addresses, and no others.
func (a *Announcer) openLinks(reading *sync.WaitGroup) error {
	wanted := map[int]bool{}
	var errs []error
	if len(a.ours) > 0 {
		all, err := net.Interfaces()
		if err != nil {
			return err
		}
		for _, i := range all {
			l := linkOf(i)
			wants := false
			for addr := range a.ours {
				wants = wants || l != nil && l.has(addr)
			}
			if !wants {
				continue
			}
			wanted[i.Index] = true
			if have := a.links[i.Index]; have != nil {
				if bytes.Equal(have.own, l.own) && slices.Equal(have.networks, l.networks) {
					continue
				}
				have.socket.Close() //nolint:errcheck // what it had to say is said again
				delete(a.links, i.Index)
			}
			if l.socket, err = open(i.Index); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", i.Name, err))
				continue
			}
			a.links[i.Index] = l
			reading.Go(func() { a.read(l, i.Index) })
			a.tellOn(l)
		}
	}
	for index, l := range a.links {
		if !wanted[index] {
			l.socket.Close() //nolint:errcheck // nothing was left to be sent
			delete(a.links, index)
		}
	}
	return errors.Join(errs...)
}

// linkOf is a link as far as neighbours can ask there; nil: they cannot.
func linkOf(i net.Interface) *link {
	if i.Flags&net.FlagLoopback != 0 || i.Flags&net.FlagUp == 0 || i.Flags&net.FlagBroadcast == 0 || len(i.HardwareAddr) != hardwareLen {
		return nil
	}
	addrs, err := i.Addrs()
	if err != nil {
		return nil
	}
	l := &link{name: i.Name, own: i.HardwareAddr}
	for _, n := range addrs {
		if p, err := netip.ParsePrefix(n.String()); err == nil && p.Addr().Is4() && p.Bits() < 32 {
			l.networks = append(l.networks, p.Masked())
		}
	}
	return l
}

// Networks are those of all links on which neighbours can ask, in order and each once.
func Networks() []netip.Prefix {
	all, err := net.Interfaces()
	if err != nil {
		return nil
	}
	var out []netip.Prefix
	for _, i := range all {
		if l := linkOf(i); l != nil {
			out = append(out, l.networks...)
		}
	}
	slices.SortFunc(out, netip.Prefix.Compare)
	return slices.Compact(out)
}

// open opens a socket that hears and sends ARP on one link.
func open(index int) (*os.File, error) {
	protocol := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, typeARP))
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0) // nothing is heard before it is bound
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: index}); err != nil {
		unix.Close(fd) //nolint:errcheck // it was not used
		return nil, os.NewSyscallError("bind", err)
	}
	return os.NewFile(uintptr(fd), "arp"), nil
}

// read answers on a link until its socket is closed.
func (a *Announcer) read(l *link, index int) {
	for buf := make([]byte, 2048); ; {
		n, err := l.socket.Read(buf)
		switch {
		case errors.Is(err, unix.ENETDOWN), errors.Is(err, unix.EINTR): // the link may come up again
			continue
		case err != nil:
			a.forget(l, index)
			return
		}
		p, ok := parse(buf[:n])
		if !ok {
			continue
		}
		if frame := p.answer(l.own, a.answersFor(l)); frame != nil {
			l.socket.Write(frame) //nolint:errcheck // who asked asks again
		}
	}
}

func (a *Announcer) answersFor(l *link) func(netip.Addr) bool {
	return func(addr netip.Addr) bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.ours[addr] && l.has(addr)
	}
}

// forget drops a link whose socket failed, so that it is opened anew.
func (a *Announcer) forget(l *link, index int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.links[index] == l && !a.ended {
		l.socket.Close() //nolint:errcheck // it has failed
		delete(a.links, index)
		a.look()
	}
}

func (a *Announcer) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	for index, l := range a.links {
		l.socket.Close() //nolint:errcheck // nothing was left to be sent
		delete(a.links, index)
	}
}
