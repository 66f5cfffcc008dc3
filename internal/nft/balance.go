package nft

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// What a load balancer's rules are made of.

// GotoByAddress leads to a chain by a verdict map of (address, protocol, port) of the destination. A packet that is not in
// the map goes on to the next rule.
func GotoByAddress(set string) Part {
	return Part{"ip daddr . meta l4proto . th dport vmap @" + set, []expr.Any{
		&expr.Payload{DestRegister: reg0, Base: expr.PayloadBaseNetworkHeader, Offset: daddrAt, Len: 4},
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: reg1},
		&expr.Payload{DestRegister: reg2, Base: expr.PayloadBaseTransportHeader, Offset: dportAt, Len: 2},
		&expr.Lookup{SourceRegister: reg0, DestRegister: unix.NFT_REG_VERDICT, IsDestRegSet: true, SetName: set},
	}}
}

// GotoByPort is GotoByAddress by a map of (protocol, port).
func GotoByPort(set string) Part {
	return Part{"meta l4proto . th dport vmap @" + set, []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: reg0},
		&expr.Payload{DestRegister: reg1, Base: expr.PayloadBaseTransportHeader, Offset: dportAt, Len: 2},
		&expr.Lookup{SourceRegister: reg0, DestRegister: unix.NFT_REG_VERDICT, IsDestRegSet: true, SetName: set},
	}}
}

// Goto goes on in another chain and does not come back.
func Goto(chain string) Part {
	return Part{"goto " + chain, []expr.Any{&expr.Verdict{Kind: expr.VerdictGoto, Chain: chain}}}
}

// Called is how a connection's destination is looked up: by all of it, or by protocol and port alone.
type Called bool

// The two kinds.
const (
	CalledAddress Called = false // (address, protocol, port)
	CalledPort    Called = true  // (protocol, port)
)

func (c Called) text() string {
	if c == CalledPort {
		return "meta l4proto . th dport"
	}
	return "ip daddr . meta l4proto . th dport"
}

// load puts what is looked up into registers from the given one on, and returns the next one.
func (c Called) load(reg uint32) (next uint32, list []expr.Any) {
	if c == CalledAddress {
		list = append(list, &expr.Payload{DestRegister: register(reg), Base: expr.PayloadBaseNetworkHeader, Offset: daddrAt, Len: 4})
		reg++
	}
	return reg + 2, append(list, &expr.Meta{Key: expr.MetaKeyL4PROTO, Register: register(reg)},
		&expr.Payload{DestRegister: register(reg + 1), Base: expr.PayloadBaseTransportHeader, Offset: dportAt, Len: 2})
}

// TurnKey is the key of a target in a map of (what is called, Number) to (address, port): the first has turn 0.
func TurnKey(called []byte, turn int) []byte {
	return binary.NativeEndian.AppendUint32(slices.Clip(called), uint32(turn))
}

// The first registers of what is looked up in the map of targets, and of what is found.
const (
	turnAt   = 8
	targetAt = 4
)

// turn finds the next of n targets.
func (c Called) turn(n int, set string) []expr.Any {
	at, list := c.load(turnAt)
	return append(list, &expr.Numgen{Register: register(at), Modulus: uint32(n), Type: unix.NFT_NG_INCREMENTAL},
		&expr.Lookup{SourceRegister: register(turnAt), DestRegister: register(targetAt), IsDestRegSet: true, SetName: set})
}

func (c Called) turnText(n int, set string) string {
	return fmt.Sprintf("%s . numgen inc mod %d map @%s", c.text(), n, set)
}

// toTarget changes the destination to the target that was found.
var toTarget = expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: register(targetAt), RegProtoMin: register(targetAt + 1), Specified: true}

// DNATInTurn changes the destination to the n targets of what is called in turn.
func DNATInTurn(c Called, n int, set string) Part {
	return Part{"dnat ip to " + c.turnText(n, set), append(c.turn(n, set), &toTarget)}
}

// DNATTo changes the destination to one target.
func DNATTo(target netip.AddrPort) Part {
	addr := target.Addr().As4()
	return Part{"dnat to " + target.String(), []expr.Any{
		&expr.Immediate{Register: register(0), Data: addr[:]},
		&expr.Immediate{Register: register(1), Data: binaryutil.BigEndian.PutUint16(target.Port())},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: register(0), RegProtoMin: register(1), Specified: true},
	}}
}

// FromAny matches packets whose source is an element of a set.
func FromAny(set string) Part { return Part{"ip saddr @" + set, inSet(set, saddrAt, false)} }

// Remember makes the source an element of a dynamic set for a time from now on. If the set is full, the packet goes on to
// the next rule.
func Remember(set string, within time.Duration) Part {
	return Part{fmt.Sprintf("update @%s { ip saddr timeout %s }", set, durationText(within)), []expr.Any{
		&expr.Payload{DestRegister: unix.NFT_REG_1, Base: expr.PayloadBaseNetworkHeader, Offset: saddrAt, Len: 4},
		&expr.Dynset{SrcRegKey: unix.NFT_REG_1, SetName: set, Operation: unix.NFT_DYNSET_OP_UPDATE, Timeout: within},
	}}
}

// durationText is whole seconds as the nft tool writes them.
func durationText(d time.Duration) string {
	left, out := int64(d/time.Second), ""
	for _, u := range []struct {
		seconds int64
		name    string
	}{{86400, "d"}, {3600, "h"}, {60, "m"}, {1, "s"}} {
		if n := left / u.seconds; n > 0 {
			out += fmt.Sprint(n, u.name)
			left %= u.seconds
		}
	}
	return out
}

// EveryNth matches the first of each n packets that come to it.
func EveryNth(n int) Part {
	return Part{fmt.Sprintf("numgen inc mod %d 0", n), []expr.Any{
		&expr.Numgen{Register: unix.NFT_REG_1, Modulus: uint32(n), Type: unix.NFT_NG_INCREMENTAL},
		&expr.Cmp{Op: expr.CmpOpEq, Register: unix.NFT_REG_1, Data: make([]byte, 4)},
	}}
}

// register is the name under which the kernel lists a register of four bytes.
func register(n uint32) uint32 {
	if n%4 == 0 {
		return unix.NFT_REG_1 + n/4
	}
	return unix.NFT_REG32_00 + n
}

// ByTCP matches TCP packets.
func ByTCP() Part { return Part{"meta l4proto tcp", protocolIs(unix.IPPROTO_TCP)} }

// RejectTCP resets a TCP connection. It is for packets that ByTCP matches.
func RejectTCP() Part {
	return Part{"reject with tcp reset", []expr.Any{&expr.Reject{Type: unix.NFT_REJECT_TCP_RST}}}
}

// Reject answers that the port is unreachable, by ICMP.
func Reject() Part {
	return Part{"reject", []expr.Any{&expr.Reject{Type: unix.NFT_REJECT_ICMP_UNREACH, Code: 3}}}
}

// FromLocal matches packets whose source is an address of this host.
func FromLocal() Part {
	return Part{"fib saddr type local", []expr.Any{
		&expr.Fib{Register: unix.NFT_REG_1, FlagSADDR: true, ResultADDRTYPE: true},
		&expr.Cmp{Op: expr.CmpOpEq, Register: unix.NFT_REG_1, Data: binaryutil.NativeEndian.PutUint32(unix.RTN_LOCAL)},
	}}
}

// ToAny matches packets whose destination is an element of a set.
func ToAny(set string) Part { return Part{"ip daddr @" + set, inSet(set, daddrAt, false)} }

// ForwardedByDNAT matches packets of connections whose destination was changed.
func ForwardedByDNAT() Part {
	return Part{"ct status dnat", []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATUS, Register: unix.NFT_REG_1},
		&expr.Bitwise{SourceRegister: unix.NFT_REG_1, DestRegister: unix.NFT_REG_1, Len: 4,
			Mask: binaryutil.NativeEndian.PutUint32(statusDNAT), Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: unix.NFT_REG_1, Data: make([]byte, 4)},
	}}
}

// statusDNAT is IPS_DST_NAT of linux/netfilter/nf_conntrack_common.h.
const statusDNAT = 1 << 5
