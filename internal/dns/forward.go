package dns

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/forward"
	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/request"
	"github.com/miekg/dns"
)

const (
	// lookAgain is for how long the machine's servers are taken to be the same.
	lookAgain = 2 * time.Second
	// most and mostOfOne are how many questions wait for the machine's servers at a time, of all clients and of one. Servers
	// that do not answer hold a question for seconds.
	mostWaiting = 2048
	mostOfOne   = 256
)

// forwarder is the plugin that asks the machine's own servers.
type forwarder struct {
	servers func() []netip.AddrPort

	mu      sync.Mutex
	looked  time.Time
	now     []netip.AddrPort
	forward *forward.Forward // nil: there is no server
}

// Name implements plugin.Handler.
func (f *forwarder) Name() string { return "machine" }

// ServeDNS implements plugin.Handler.
func (f *forwarder) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	to := f.current()
	if to == nil {
		return dns.RcodeServerFailure, nil
	}
	return to.ServeDNS(ctx, w, r)
}

// current asks the servers that there are now. CoreDNS looks after its connections to them from time to time, so they are
// opened with the first question.
func (f *forwarder) current() *forward.Forward {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.looked) < lookAgain {
		return f.forward
	}
	f.looked = time.Now()
	servers := f.servers()
	if slices.Equal(servers, f.now) {
		return f.forward
	}
	if old := f.forward; old != nil {
		time.AfterFunc(10*time.Second, func() { old.OnShutdown() }) //nolint:errcheck // it always is nil; questions are under way
	}
	f.now, f.forward = servers, nil
	if len(servers) > 0 {
		f.forward = forward.New()
		for _, s := range servers {
			f.forward.SetProxy(proxy.NewProxy("forward", s.String(), transport.DNS))
		}
	}
	return f.forward
}

// close ends the connections to the servers.
func (f *forwarder) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.forward != nil {
		f.forward.OnShutdown() //nolint:errcheck // it always is nil
		f.forward, f.now = nil, nil
	}
}

// bound is the plugin that refuses more questions for others than can wait.
type bound struct {
	next interface {
		ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error)
	}
	all atomic.Int32
	mu  sync.Mutex
	of  map[string]int
}

// Name implements plugin.Handler.
func (b *bound) Name() string { return "bound" }

// ServeDNS implements plugin.Handler.
func (b *bound) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	state := request.Request{W: w, Req: r}
	client := state.IP()
	defer b.all.Add(-1)
	if b.all.Add(1) > mostWaiting || !b.enter(client) {
		return dns.RcodeRefused, nil
	}
	defer b.leave(client)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return b.next.ServeDNS(ctx, w, r)
}

func (b *bound) enter(client string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of[client] >= mostOfOne {
		return false
	}
	if b.of == nil {
		b.of = map[string]int{}
	}
	b.of[client]++
	return true
}

func (b *bound) leave(client string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of[client]--; b.of[client] == 0 {
		delete(b.of, client)
	}
}
