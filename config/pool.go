package config

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// AddressRange is the IPv4 addresses from First to Last.
type AddressRange struct{ First, Last netip.Addr }

// AddressPool is ranges of addresses that do not overlap.
type AddressPool []AddressRange

// largestPool is how many addresses a range may have.
const largestPool = 1 << 16

// ParseAddressPool reads ranges separated by commas: FIRST-LAST, a range with its bits, or one address.
func ParseAddressPool(v string) (AddressPool, error) {
	var out AddressPool
	for _, part := range list(v) {
		r, err := parseRange(part)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", part, err)
		}
		for _, o := range out {
			if o.overlaps(r) {
				return nil, fmt.Errorf("%q: it overlaps %s", part, o)
			}
		}
		out = append(out, r)
	}
	return out, nil
}

func parseRange(v string) (r AddressRange, err error) {
	if p, perr := netip.ParsePrefix(v); perr == nil {
		if !p.Addr().Is4() {
			return r, errIPv4
		}
		r.First = p.Masked().Addr()
		r.Last = offset(r.First, uint32(1<<(32-p.Bits())-1))
	} else {
		first, last, several := strings.Cut(v, "-")
		if !several {
			last = first
		}
		if r.First, err = netip.ParseAddr(strings.TrimSpace(first)); err == nil {
			r.Last, err = netip.ParseAddr(strings.TrimSpace(last))
		}
		if err != nil || !r.First.Is4() || !r.Last.Is4() {
			return r, errIPv4
		}
	}
	switch {
	case r.Last.Less(r.First):
		return r, errors.New("the last address is before the first")
	case distance(r.First, r.Last) >= largestPool:
		return r, fmt.Errorf("it has more than %d addresses", largestPool)
	}
	for _, not := range []string{"0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3"} {
		if p := netip.MustParsePrefix(not); r.Overlaps(p) {
			return r, fmt.Errorf("it overlaps %s, whose addresses are no single machine's on the network", p)
		}
	}
	return r, nil
}

var errIPv4 = errors.New("expected IPv4 addresses, as 10.9.0.10-10.9.0.20, 10.9.0.16/28 or 10.9.0.10")

func distance(from, to netip.Addr) uint32 {
	a, b := from.As4(), to.As4()
	return binary.BigEndian.Uint32(b[:]) - binary.BigEndian.Uint32(a[:])
}

func offset(a netip.Addr, n uint32) netip.Addr {
	b := a.As4()
	binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])+n)
	return netip.AddrFrom4(b)
}

func (r AddressRange) contains(a netip.Addr) bool {
	return a.Is4() && !a.Less(r.First) && !r.Last.Less(a)
}

func (r AddressRange) overlaps(o AddressRange) bool {
	return r.contains(o.First) || o.contains(r.First)
}

// Overlaps reports whether an address of the range is in p.
func (r AddressRange) Overlaps(p netip.Prefix) bool {
	return p.Contains(r.First) || r.contains(p.Masked().Addr())
}

// String is FIRST-LAST, or the one address.
func (r AddressRange) String() string {
	if r.First == r.Last {
		return r.First.String()
	}
	return r.First.String() + "-" + r.Last.String()
}

// Contains reports whether an address is in the pool.
func (p AddressPool) Contains(a netip.Addr) bool {
	for _, r := range p {
		if r.contains(a) {
			return true
		}
	}
	return false
}

// Size is how many addresses the pool has, and At the n-th of them.
func (p AddressPool) Size() (n int) {
	for _, r := range p {
		n += int(distance(r.First, r.Last)) + 1
	}
	return n
}

// At is the n-th address, from 0 on.
func (p AddressPool) At(n int) netip.Addr {
	for _, r := range p {
		size := int(distance(r.First, r.Last)) + 1
		if n < size {
			return offset(r.First, uint32(n))
		}
		n -= size
	}
	return netip.Addr{}
}

// Overlaps says which range has an address that is in r; empty: none.
func (p AddressPool) Overlaps(r netip.Prefix) string {
	for _, own := range p {
		if own.Overlaps(r) {
			return own.String()
		}
	}
	return ""
}

// String is what ParseAddressPool reads.
func (p AddressPool) String() string {
	var out []string
	for _, r := range p {
		out = append(out, r.String())
	}
	return strings.Join(out, ",")
}

// checkPool finds addresses of load balancers that are somebody else's.
func (c *Config) checkPool() error {
	if len(c.LBPool) == 0 {
		return nil
	}
	if !c.Has(Master) {
		return errors.New("lb-pool: only masters give addresses to load balancers: give it to them, and remove it here")
	}
	for what, p := range map[string]netip.Prefix{"cluster-cidr": c.ClusterCIDR, "service-cidr": c.ServiceCIDR} {
		if r := c.LBPool.Overlaps(p); r != "" {
			return fmt.Errorf("lb-pool: %s overlaps %s, %s: choose addresses of the machines' network that nobody has", r, what, p)
		}
	}
	if c.NodeIP.IsValid() && c.LBPool.Contains(c.NodeIP) {
		return fmt.Errorf("lb-pool: it has the address of this machine, %s: choose addresses that nobody has", c.NodeIP)
	}
	return nil
}
