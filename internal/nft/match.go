package nft

import "net/netip"

// Match is a condition of a rule in another table, other than on the link.
type Match struct {
	Field  Field
	Not    bool         // negated
	Prefix netip.Prefix // for BySource and ByDestination
	Proto  byte         // for ByProtocol
	Ports  [2]uint16    // for ByPort: the first and the last
	States uint32       // for ByState: bits of conntrack, such as expr.CtStateBitNEW
}

// Field is the part of a packet that a Match looks at.
type Field int

// The fields that are understood. Every other condition is Unread; Never is a condition that no IPv4 packet meets.
const (
	Unread Field = iota
	Never
	BySource
	ByDestination
	ByProtocol
	ByPort // of the destination
	ByState
)

// Share is how much of some traffic a rule matches.
type Share int

// The shares, in their order.
const (
	None Share = iota
	Some
	All
)

// of is the share of the traffic of a that matches. drops matters for a Match on states: a connection is dropped if
// any of its packets is dropped, and accepted only if all its packets are.
func (m Match) of(a Accept, drops bool) Share {
	p := Some
	switch m.Field {
	case Never:
		p = None
	case BySource:
		p = overlap(m.Prefix, a.From)
	case ByDestination:
		p = overlap(m.Prefix, a.To)
	case ByProtocol:
		if a.Protocol != "" {
			p = allOrNone(protocols[a.Protocol] == m.Proto)
		}
	case ByPort:
		if a.Port != 0 {
			p = allOrNone(m.Ports[0] <= a.Port && a.Port <= m.Ports[1])
		}
	case ByState:
		return m.ofStates(a, drops)
	}
	if m.Not {
		return All - p
	}
	return p
}

// ofStates is of for a Match on the state of connections.
func (m Match) ofStates(a Accept, drops bool) Share {
	has := func(bit uint32) bool { return (m.States&bit != 0) != m.Not }
	going, fresh := has(stateEstablished), has(stateNew)
	if a.Replies { // only packets of existing connections
		return allOrNone(going)
	}
	switch {
	case going && fresh, drops && (going || fresh):
		return All
	case going || fresh:
		return Some
	}
	return None
}

func allOrNone(all bool) Share {
	if all {
		return All
	}
	return None
}

// overlap is the share of the range traffic that is in set. Traffic without a range is from or to anywhere.
func overlap(set, traffic netip.Prefix) Share {
	switch {
	case set.Bits() == 0:
		return All
	case !traffic.IsValid():
		return Some
	case set.Bits() <= traffic.Bits() && set.Contains(traffic.Addr()):
		return All
	case set.Overlaps(traffic):
		return Some
	}
	return None
}
