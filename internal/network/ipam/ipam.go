package ipam

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
)

// ErrNoAddress means that all addresses of the node's range are in use.
var ErrNoAddress = errors.New("no free pod address")

// reserved is how many addresses at the start of a range are not assigned to pods: the network address, and one for
// the connection between nodes.
const reserved = 2

// Pool assigns the addresses of one prefix in turn, so that a freed one is reused as late as possible.
type Pool struct {
	mu      sync.Mutex
	prefix  netip.Prefix
	used    map[netip.Addr]struct{}
	retired map[netip.Addr]struct{} // of removed pods, not to be assigned again until Free
	size    uint64                  // addresses in the prefix, at most 2^32
	next    uint64                  // index of the address to try first
}

// SetPrefix changes the range. Addresses in use stay in use.
func (p *Pool) SetPrefix(prefix netip.Prefix) error {
	if !prefix.Addr().Is4() {
		return fmt.Errorf("pod range %s: only IPv4 is served", prefix)
	}
	if prefix.Bits() > 29 {
		return fmt.Errorf("pod range %s: too small, a /29 is the least", prefix)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	prefix = prefix.Masked()
	if prefix == p.prefix {
		return nil
	}
	p.prefix, p.size, p.next = prefix, 1<<(32-prefix.Bits()), reserved
	return nil
}

// Prefix is the range; invalid until it is set.
func (p *Pool) Prefix() netip.Prefix {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.prefix
}

// Get assigns a free address. The error is ErrNoAddress if there is none.
func (p *Pool) Get() (netip.Addr, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.prefix.IsValid() {
		return netip.Addr{}, errors.New("the node has no pod range yet")
	}
	last := p.size - 1 // the broadcast address
	for range p.size {
		n := p.next
		if p.next++; p.next >= last {
			p.next = reserved
		}
		a := nth(p.prefix.Addr(), n)
		_, taken := p.used[a]
		if _, left := p.retired[a]; !taken && !left {
			p.take(a)
			return a, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("%w: all of %s is in use", ErrNoAddress, p.prefix)
}

// Reserve marks an address as used that an existing sandbox has. The next address is looked for after it.
func (p *Pool) Reserve(a netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.take(a)
	if p.prefix.Contains(a) {
		if n := distance(p.prefix.Addr(), a) + 1; n > p.next && n < p.size-1 {
			p.next = n
		}
	}
}

// Put makes an address free at once, one that nobody has used.
func (p *Pool) Put(a netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.used, a)
}

// Retire ends the use of an address; Free makes it available again.
func (p *Pool) Retire(a netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.used, a)
	if p.retired == nil {
		p.retired = map[netip.Addr]struct{}{}
	}
	p.retired[a] = struct{}{}
}

// Retired are the addresses that are retired and not free yet.
func (p *Pool) Retired() []netip.Addr {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.retired))
}

// Free makes retired addresses available.
func (p *Pool) Free(list []netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range list {
		delete(p.retired, a)
	}
}

// Unassigned reports whether an address is in the pods' range and no pod has it.
func (p *Pool) Unassigned(a netip.Addr) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, used := p.used[a]
	_, left := p.retired[a]
	return left || !used && p.prefix.IsValid() && p.prefix.Contains(a)
}

func (p *Pool) take(a netip.Addr) {
	if p.used == nil {
		p.used = map[netip.Addr]struct{}{}
	}
	p.used[a] = struct{}{}
	delete(p.retired, a)
}

// Tunnel is the address of a range that the node itself has at the tunnel to other nodes. No pod gets it.
func Tunnel(prefix netip.Prefix) netip.Addr { return nth(prefix.Addr(), 1) }

func nth(base netip.Addr, n uint64) netip.Addr {
	b := base.As4()
	v := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	v += uint32(n)
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
}

func distance(base, a netip.Addr) uint64 {
	b, c := base.As4(), a.As4()
	v := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	w := uint32(c[0])<<24 | uint32(c[1])<<16 | uint32(c[2])<<8 | uint32(c[3])
	return uint64(w - v)
}
