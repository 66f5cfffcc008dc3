package plan

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Range is the IPv4 addresses from First to Last, as numbers.
type Range struct{ First, Last uint32 }

// Ranges are addresses. United ones are in order, and neither overlap nor touch.
type Ranges []Range

func numberOf(a netip.Addr) uint32 {
	b := a.As4()
	return binary.BigEndian.Uint32(b[:])
}

func addrOf(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, n)))
}

func rangeOf(p netip.Prefix) Range {
	first := numberOf(p.Masked().Addr())
	return Range{first, first | uint32(1<<(32-p.Bits())-1)}
}

// rangesOf is a prefix without others.
func rangesOf(whole netip.Prefix, except []netip.Prefix) (out Ranges) {
	var gaps Ranges
	for _, e := range except {
		gaps = append(gaps, rangeOf(e))
	}
	r := rangeOf(whole)
	next := uint64(r.First) // the first address that is not dealt with; it may be past the last one there is
	for _, g := range gaps.united() {
		if g.Last < r.First || g.First > r.Last {
			continue
		}
		if uint64(g.First) > next {
			out = append(out, Range{uint32(next), g.First - 1})
		}
		next = max(next, uint64(g.Last)+1)
	}
	if next <= uint64(r.Last) {
		out = append(out, Range{uint32(next), r.Last})
	}
	return out
}

// united are the same addresses in as few ranges as possible.
func (r Ranges) united() (out Ranges) {
	r = slices.SortedFunc(slices.Values(r), func(a, b Range) int { return cmp.Compare(a.First, b.First) })
	for _, next := range r {
		if n := len(out); n > 0 && uint64(next.First) <= uint64(out[n-1].Last)+1 {
			out[n-1].Last = max(out[n-1].Last, next.Last)
			continue
		}
		out = append(out, next)
	}
	return out
}

// String is the ranges as text, the same for the same addresses if they are united.
func (r Ranges) String() string {
	words := make([]string, len(r))
	for i, one := range r {
		words[i] = fmt.Sprintf("%s-%s", addrOf(one.First), addrOf(one.Last))
	}
	return strings.Join(words, ",")
}
