package nft

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Part is a part of a rule: a match or a statement.
type Part struct {
	text  string
	exprs []expr.Any
}

// Rule is a list of matches, and statements for the packets for which all of them hold.
type Rule []Part

// String is the rule as the nft tool writes it.
func (r Rule) String() string {
	words := make([]string, len(r))
	for i, p := range r {
		words[i] = p.text
	}
	return strings.Join(words, " ")
}

func (r Rule) exprs() []expr.Any {
	var out []expr.Any
	for _, p := range r {
		out = append(out, p.exprs...)
	}
	return out
}

// target is the chain in which the rule goes on.
func (r Rule) target() string {
	for _, e := range r.exprs() {
		if v, ok := e.(*expr.Verdict); ok && v.Chain != "" {
			return v.Chain
		}
	}
	return ""
}

// sets are those that the rule looks into or changes.
func (r Rule) sets() (out []string) {
	for _, e := range r.exprs() {
		switch e := e.(type) {
		case *expr.Lookup:
			out = append(out, e.SetName)
		case *expr.Dynset:
			out = append(out, e.SetName)
		}
	}
	return out
}

// The registers in which a key is assembled, four bytes each, by the names under which the kernel lists them.
const (
	reg0 = unix.NFT_REG_1
	reg1 = unix.NFT_REG32_01
	reg2 = unix.NFT_REG32_02
)

// The offsets of the addresses in an IPv4 header.
const (
	saddrAt = 12
	daddrAt = 16
)

// From matches packets whose source is in p.
func From(p netip.Prefix) Part {
	return Part{"ip saddr " + p.String(), inPrefix(p, saddrAt, expr.CmpOpEq)}
}

// To matches packets whose destination is in p.
func To(p netip.Prefix) Part {
	return Part{"ip daddr " + p.String(), inPrefix(p, daddrAt, expr.CmpOpEq)}
}

// NotTo matches packets whose destination is not in p.
func NotTo(p netip.Prefix) Part {
	return Part{"ip daddr != " + p.String(), inPrefix(p, daddrAt, expr.CmpOpNeq)}
}

// NotFrom matches packets whose source is not in p.
func NotFrom(p netip.Prefix) Part {
	return Part{"ip saddr != " + p.String(), inPrefix(p, saddrAt, expr.CmpOpNeq)}
}

// NotToAny matches packets whose destination is in no element of a set.
func NotToAny(set string) Part { return Part{"ip daddr != @" + set, inSet(set, daddrAt, true)} }

// NotFromAny matches packets whose source is in no element of a set.
func NotFromAny(set string) Part { return Part{"ip saddr != @" + set, inSet(set, saddrAt, true)} }

func inSet(set string, offset uint32, not bool) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: unix.NFT_REG_1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: 4},
		&expr.Lookup{SourceRegister: unix.NFT_REG_1, SetName: set, Invert: not},
	}
}

// UDPToAny matches UDP packets whose destination port is in a set.
func UDPToAny(set string) Part {
	return Part{"udp dport @" + set, append(protocolIs(unix.IPPROTO_UDP),
		&expr.Payload{DestRegister: unix.NFT_REG_1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Lookup{SourceRegister: unix.NFT_REG_1, SetName: set})}
}

func inPrefix(p netip.Prefix, offset uint32, op expr.CmpOp) []expr.Any {
	addr := p.Masked().Addr().As4()
	load := &expr.Payload{DestRegister: unix.NFT_REG_1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: 4}
	cmp := &expr.Cmp{Op: op, Register: unix.NFT_REG_1, Data: addr[:]}
	if p.Bits() == 32 {
		return []expr.Any{load, cmp}
	}
	mask := uint32(0xffffffff) << (32 - p.Bits())
	return []expr.Any{load, &expr.Bitwise{
		SourceRegister: unix.NFT_REG_1, DestRegister: unix.NFT_REG_1, Len: 4,
		Mask: binaryutil.BigEndian.PutUint32(mask), Xor: make([]byte, 4),
	}, cmp}
}

// NotInBy matches packets that came in by another link than those whose name has this prefix, or from the host itself.
func NotInBy(prefix string) Part {
	return byLink("iifname !=", expr.MetaKeyIIFNAME, expr.CmpOpNeq, prefix)
}

// NotOutBy matches packets that leave by another link than those whose name has this prefix.
func NotOutBy(prefix string) Part {
	return byLink("oifname !=", expr.MetaKeyOIFNAME, expr.CmpOpNeq, prefix)
}

func byLink(text string, key expr.MetaKey, op expr.CmpOp, prefix string) Part {
	return Part{fmt.Sprintf("%s %q", text, prefix+"*"), []expr.Any{
		&expr.Meta{Key: key, Register: unix.NFT_REG_1},
		&expr.Cmp{Op: op, Register: unix.NFT_REG_1, Data: []byte(prefix)},
	}}
}

// InBy matches packets that came in by a link whose name has this prefix.
func InBy(prefix string) Part { return byLink("iifname", expr.MetaKeyIIFNAME, expr.CmpOpEq, prefix) }

// OutByAny matches packets that leave by a link whose name has this prefix.
func OutByAny(prefix string) Part {
	return byLink("oifname", expr.MetaKeyOIFNAME, expr.CmpOpEq, prefix)
}

// OutBy matches packets that leave by the link with this name.
func OutBy(link string) Part {
	return Part{fmt.Sprintf("oifname %q", link), []expr.Any{
		&expr.Meta{Key: expr.MetaKeyOIFNAME, Register: unix.NFT_REG_1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: unix.NFT_REG_1, Data: append([]byte(link), 0)},
	}}
}

// ToLocal matches packets for an address of this host.
func ToLocal() Part {
	return Part{"fib daddr type local", []expr.Any{
		&expr.Fib{Register: unix.NFT_REG_1, FlagDADDR: true, ResultADDRTYPE: true},
		&expr.Cmp{Op: expr.CmpOpEq, Register: unix.NFT_REG_1, Data: binaryutil.NativeEndian.PutUint32(unix.RTN_LOCAL)},
	}}
}

// Spoofed matches packets that came in by a link over which there is no route back to their source.
func Spoofed() Part {
	return Part{"fib saddr . iif oif missing", []expr.Any{
		&expr.Fib{Register: unix.NFT_REG_1, FlagSADDR: true, FlagIIF: true, ResultOIF: true},
		&expr.Cmp{Op: expr.CmpOpEq, Register: unix.NFT_REG_1, Data: make([]byte, 4)},
	}}
}

// PairIn matches packets whose source and destination, together, are an element of a set.
func PairIn(set string) Part {
	return Part{"ip saddr . ip daddr @" + set, []expr.Any{
		&expr.Payload{DestRegister: reg0, Base: expr.PayloadBaseNetworkHeader, Offset: saddrAt, Len: 4},
		&expr.Payload{DestRegister: reg1, Base: expr.PayloadBaseNetworkHeader, Offset: daddrAt, Len: 4},
		&expr.Lookup{SourceRegister: unix.NFT_REG_1, SetName: set},
	}}
}

// DNATByPort changes the destination by a map of (protocol, port) to (address, port); a packet that is not in the map
// goes on to the next rule.
func DNATByPort(set string) Part {
	return Part{"dnat ip to meta l4proto . th dport map @" + set, append([]expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: reg0},
		&expr.Payload{DestRegister: reg1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
	}, dnatBy(set)...)}
}

// DNATByAddress is DNATByPort by a map of (address, protocol, port).
func DNATByAddress(set string) Part {
	return Part{"dnat ip to ip daddr . meta l4proto . th dport map @" + set, append([]expr.Any{
		&expr.Payload{DestRegister: reg0, Base: expr.PayloadBaseNetworkHeader, Offset: daddrAt, Len: 4},
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: reg1},
		&expr.Payload{DestRegister: reg2, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
	}, dnatBy(set)...)}
}

func dnatBy(set string) []expr.Any {
	return []expr.Any{
		&expr.Lookup{SourceRegister: unix.NFT_REG_1, DestRegister: unix.NFT_REG_1, IsDestRegSet: true, SetName: set},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: reg0, RegProtoMin: reg1, Specified: true},
	}
}

// Masquerade gives a packet the source address of the link by which it leaves.
func Masquerade() Part { return Part{"masquerade", []expr.Any{&expr.Masq{}}} }

// Drop drops a packet.
func Drop() Part { return Part{"drop", []expr.Any{&expr.Verdict{Kind: expr.VerdictDrop}}} }
