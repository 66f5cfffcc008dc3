package network

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
)

// ErrNoAddress is that the node's range is used up.
var ErrNoAddress = errors.New("no free pod address")

// reserved is how many addresses at the start of a range are kept back: the network's own and one for
// whoever joins the nodes.
const reserved = 2

// pool hands out the addresses of one prefix, round the circle, so that a freed one comes back
// as late as possible.
type pool struct {
	mu     sync.Mutex
	prefix netip.Prefix
	used   map[netip.Addr]struct{}
	left   map[netip.Addr]struct{} // of removed pods, not to be given out again yet: see flows.go
	size   uint64                  // addresses in the prefix, at most 2^32
	next   uint64                  // where to look first
}

// setPrefix changes the range. Addresses in use stay in use.
func (p *pool) setPrefix(prefix netip.Prefix) error {
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

func (p *pool) current() netip.Prefix {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.prefix
}

// get takes a free address.
func (p *pool) get() (netip.Addr, error) {
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
		if _, left := p.left[a]; !taken && !left {
			p.take(a)
			return a, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("%w: all of %s is in use", ErrNoAddress, p.prefix)
}

// reserve takes this very address, which a sandbox that is there already has. What comes next starts after it.
func (p *pool) reserve(a netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.take(a)
	if p.prefix.Contains(a) {
		if n := distance(p.prefix.Addr(), a) + 1; n > p.next && n < p.size-1 {
			p.next = n
		}
	}
}

func (p *pool) put(a netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.used, a)
}

// leave ends the use of an address; free makes it available.
func (p *pool) leave(a netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.used, a)
	if p.left == nil {
		p.left = map[netip.Addr]struct{}{}
	}
	p.left[a] = struct{}{}
}

// leaving are the addresses that have been left.
func (p *pool) leaving() []netip.Addr {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.left))
}

func (p *pool) free(list []netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range list {
		delete(p.left, a)
	}
}

// dead says that an address is a pod's and no pod has it.
func (p *pool) dead(a netip.Addr) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, used := p.used[a]
	_, left := p.left[a]
	return left || !used && p.prefix.IsValid() && p.prefix.Contains(a)
}

func (p *pool) take(a netip.Addr) {
	if p.used == nil {
		p.used = map[netip.Addr]struct{}{}
	}
	p.used[a] = struct{}{}
	delete(p.left, a)
}

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
