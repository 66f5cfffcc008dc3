package nft

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"github.com/google/nftables/xt"
	"golang.org/x/sys/unix"
)

// Accept is a rule that accepts IPv4 packets, with matches that every kind of table supports. An empty field matches
// everything.
type Accept struct {
	From, To netip.Prefix
	Protocol string // tcp, udp or icmp
	Port     uint16 // of the destination, for tcp and udp
	Replies  bool   // only packets of existing connections
}

// String names the rule; rules that differ have different names.
func (a Accept) String() string {
	var words []string
	if a.From.IsValid() {
		words = append(words, "from "+a.From.String())
	}
	if a.To.IsValid() {
		words = append(words, "to "+a.To.String())
	}
	if a.Protocol != "" {
		words = append(words, a.Protocol)
	}
	if a.Port != 0 {
		words = append(words, fmt.Sprint(a.Port))
	}
	if a.Replies {
		words = append(words, "replies")
	}
	return strings.Join(words, " ")
}

var protocols = map[string]byte{"tcp": unix.IPPROTO_TCP, "udp": unix.IPPROTO_UDP, "icmp": unix.IPPROTO_ICMP}

// exprs are the rule for a table of the nft tool's kind.
func (a Accept) exprs(family nftables.TableFamily) []expr.Any {
	var out []expr.Any
	if family == nftables.TableFamilyINet {
		out = append(out, &expr.Meta{Key: expr.MetaKeyNFPROTO, Register: unix.NFT_REG_1},
			&expr.Cmp{Op: expr.CmpOpEq, Register: unix.NFT_REG_1, Data: []byte{unix.NFPROTO_IPV4}})
	}
	out = append(out, a.addresses()...)
	if a.Protocol != "" {
		out = append(out, protocolIs(protocols[a.Protocol])...)
	}
	if a.Port != 0 {
		out = append(out, &expr.Payload{DestRegister: unix.NFT_REG_1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
			&expr.Cmp{Op: expr.CmpOpEq, Register: unix.NFT_REG_1, Data: binaryutil.BigEndian.PutUint16(a.Port)})
	}
	if a.Replies {
		out = append(out, &expr.Ct{Key: expr.CtKeySTATE, Register: unix.NFT_REG_1},
			&expr.Bitwise{SourceRegister: unix.NFT_REG_1, DestRegister: unix.NFT_REG_1, Len: 4,
				Mask: binaryutil.NativeEndian.PutUint32(expr.CtStateBitESTABLISHED | expr.CtStateBitRELATED), Xor: make([]byte, 4)},
			&expr.Cmp{Op: expr.CmpOpNeq, Register: unix.NFT_REG_1, Data: make([]byte, 4)})
	}
	return append(out, &expr.Counter{}, &expr.Verdict{Kind: expr.VerdictAccept})
}

func (a Accept) addresses() (out []expr.Any) {
	if a.From.IsValid() {
		out = append(out, inPrefix(a.From, saddrAt, expr.CmpOpEq)...)
	}
	if a.To.IsValid() {
		out = append(out, inPrefix(a.To, daddrAt, expr.CmpOpEq)...)
	}
	return out
}

func protocolIs(p byte) []expr.Any {
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: unix.NFT_REG_1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: unix.NFT_REG_1, Data: []byte{p}}}
}

// iptables are the rule as iptables-nft would have made it. iptables-nft calls a whole table incompatible if it
// cannot print one rule, and then neither Docker nor ufw can use the table any more. So everything except addresses
// and protocols is a match extension of iptables.
func (a Accept) iptables(comment string) []expr.Any {
	var out []expr.Any
	if a.Protocol != "" {
		out = append(out, protocolIs(protocols[a.Protocol])...)
	}
	out = append(out, a.addresses()...)
	if a.Port != 0 {
		ports, all := [2]uint16{a.Port, a.Port}, [2]uint16{0, 0xffff}
		if a.Protocol == "udp" {
			out = append(out, &expr.Match{Name: "udp", Info: &xt.Udp{SrcPorts: all, DstPorts: ports}})
		} else {
			out = append(out, &expr.Match{Name: "tcp", Info: &xt.Tcp{SrcPorts: all, DstPorts: ports}})
		}
	}
	if a.Replies {
		none := net.IPv4zero.To4()
		mask := net.IPMask(none)
		out = append(out, &expr.Match{Name: "conntrack", Rev: 3, Info: &xt.ConntrackMtinfo3{ConntrackMtinfo2: xt.ConntrackMtinfo2{
			ConntrackMtinfoBase: xt.ConntrackMtinfoBase{
				OrigSrcAddr: none, OrigSrcMask: mask, OrigDstAddr: none, OrigDstMask: mask,
				ReplSrcAddr: none, ReplSrcMask: mask, ReplDstAddr: none, ReplDstMask: mask,
				MatchFlags: uint16(xt.ConntrackState),
			},
			StateMask: conntrackEstablished | conntrackRelated,
		}}})
	}
	text := xt.Comment(comment)
	return append(out, &expr.Match{Name: "comment", Info: &text}, &expr.Counter{}, &expr.Verdict{Kind: expr.VerdictAccept})
}

// XT_CONNTRACK_STATE_BIT of linux/netfilter/xt_conntrack.h.
const (
	conntrackEstablished = 1 << 1
	conntrackRelated     = 1 << 2
)

// commentOf is the comment that a rule carries, of either kind.
func commentOf(r *nftables.Rule) string {
	if s, ok := userdata.GetString(r.UserData, userdata.TypeComment); ok {
		return s
	}
	for _, e := range r.Exprs {
		if m, ok := e.(*expr.Match); ok && m.Name == "comment" {
			if c, ok := m.Info.(*xt.Comment); ok {
				return string(*c)
			}
		}
	}
	return ""
}
