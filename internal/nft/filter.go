package nft

import (
	"encoding/binary"
	"fmt"

	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// What a filter's rules are made of.

// Allow accepts a packet in this base chain; those of later priorities, and other tables', still judge it.
func Allow() Part { return Part{"accept", []expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}}} }

// Jump goes on in another chain and, if nothing is decided there, after this rule.
func Jump(chain string) Part {
	return Part{"jump " + chain, []expr.Any{&expr.Verdict{Kind: expr.VerdictJump, Chain: chain}}}
}

// GotoBySource leads to a chain by a verdict map of the source address. A packet that is not in the map goes on to the next
// rule.
func GotoBySource(set string) Part { return Part{"ip saddr vmap @" + set, verdictBy(set, saddrAt)} }

// GotoByDestination is GotoBySource by the destination address.
func GotoByDestination(set string) Part {
	return Part{"ip daddr vmap @" + set, verdictBy(set, daddrAt)}
}

func verdictBy(set string, offset uint32) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: unix.NFT_REG_1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: 4},
		&expr.Lookup{SourceRegister: unix.NFT_REG_1, DestRegister: unix.NFT_REG_VERDICT, IsDestRegSet: true, SetName: set},
	}
}

// EndpointIn matches packets whose destination (address, protocol, port) is an element of a set.
func EndpointIn(set string) Part {
	return Part{"ip daddr . meta l4proto . th dport @" + set, []expr.Any{
		&expr.Payload{DestRegister: reg0, Base: expr.PayloadBaseNetworkHeader, Offset: daddrAt, Len: 4},
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: reg1},
		&expr.Payload{DestRegister: reg2, Base: expr.PayloadBaseTransportHeader, Offset: dportAt, Len: 2},
		&expr.Lookup{SourceRegister: reg0, SetName: set},
	}}
}

// OfProtocol matches packets of a protocol of layer 4.
func OfProtocol(p byte) Part {
	name := map[byte]string{unix.IPPROTO_TCP: "tcp", unix.IPPROTO_UDP: "udp", unix.IPPROTO_SCTP: "sctp"}[p]
	if name == "" {
		name = fmt.Sprint(p)
	}
	return Part{"meta l4proto " + name, protocolIs(p)}
}

// ToPorts matches packets whose destination port is in a range. It is for packets of a protocol that has ports.
func ToPorts(first, last uint16) Part {
	load := &expr.Payload{DestRegister: unix.NFT_REG_1, Base: expr.PayloadBaseTransportHeader, Offset: dportAt, Len: 2}
	than := func(op expr.CmpOp, port uint16) expr.Any {
		return &expr.Cmp{Op: op, Register: unix.NFT_REG_1, Data: binary.BigEndian.AppendUint16(nil, port)}
	}
	if first == last {
		return Part{fmt.Sprintf("th dport %d", first), []expr.Any{load, than(expr.CmpOpEq, first)}}
	}
	return Part{fmt.Sprintf("th dport >= %d th dport <= %d", first, last),
		[]expr.Any{load, than(expr.CmpOpGte, first), load, than(expr.CmpOpLte, last)}}
}

// Reply matches packets of a connection that go against the direction in which it was opened.
func Reply() Part {
	return Part{"ct direction reply", []expr.Any{
		&expr.Ct{Key: expr.CtKeyDIRECTION, Register: unix.NFT_REG_1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: unix.NFT_REG_1, Data: []byte{directionReply}},
	}}
}

// directionReply is IP_CT_DIR_REPLY of linux/netfilter/nf_conntrack_tuple_common.h.
const directionReply = 1

// Related matches what belongs to a connection without being of it, such as errors told by ICMP.
func Related() Part {
	return Part{"ct state related", []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATE, Register: unix.NFT_REG_1},
		&expr.Bitwise{SourceRegister: unix.NFT_REG_1, DestRegister: unix.NFT_REG_1, Len: 4,
			Mask: binaryutil.NativeEndian.PutUint32(expr.CtStateBitRELATED), Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: unix.NFT_REG_1, Data: make([]byte, 4)},
	}}
}
