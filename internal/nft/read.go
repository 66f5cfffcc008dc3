package nft

import (
	"bytes"
	"net"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/xt"
	"golang.org/x/sys/unix"
)

// The states of conntrack that are distinguished: the kernel's bits, the same for nft and iptables.
const (
	stateEstablished = expr.CtStateBitESTABLISHED | expr.CtStateBitRELATED
	stateNew         = expr.CtStateBitNEW
)

// ruleReader makes an OtherRule of a rule's expressions: one loads a register, later ones compare it.
type ruleReader struct {
	rule   OtherRule
	target string // the chain that it jumps to
	loaded map[uint32]load
}

// load is what is in a register.
type load struct {
	from expr.Any // nil: not understood
	mask []byte   // nil: all of it
}

// readRule reads one rule, and the chain that it jumps to, if any.
func readRule(r *nftables.Rule) (o OtherRule, target string) {
	rr := ruleReader{rule: OtherRule{Handle: r.Handle, Comment: commentOf(r)}, loaded: map[uint32]load{}}
	for _, e := range r.Exprs {
		rr.read(e)
	}
	return rr.rule, rr.target
}

func (r *ruleReader) read(e expr.Any) {
	switch e := e.(type) {
	case *expr.Meta:
		if !e.SourceRegister {
			r.loaded[e.Register] = load{from: e}
		}
	case *expr.Payload:
		if e.OperationType == expr.PayloadLoad {
			r.loaded[e.DestRegister] = load{from: e}
		}
	case *expr.Ct:
		if !e.SourceRegister {
			r.loaded[e.Register] = load{from: e}
		}
	case *expr.Bitwise:
		l := r.loaded[e.SourceRegister]
		if l.mask != nil || !zero(e.Xor) || len(e.Mask) == 0 {
			l = load{}
		}
		l.mask = e.Mask
		r.loaded[e.DestRegister] = l
	case *expr.Cmp:
		r.compare(r.loaded[e.Register], e.Op, e.Data)
	case *expr.Range:
		r.inRange(r.loaded[e.Register], e)
	case *expr.Lookup:
		// The elements of a set of links are not read; the set is assumed to have the links that matter.
		if m, ok := r.loaded[e.SourceRegister].from.(*expr.Meta); e.IsDestRegSet || !ok || !isLink(m.Key) {
			r.match(Match{})
		}
	case *expr.Match:
		r.extension(e)
	case *expr.Verdict:
		r.verdict(e)
	case *expr.Reject:
		r.rule.Verdict = Drops
	case *expr.Target:
		if e.Name == "REJECT" || e.Name == "DROP" {
			r.rule.Verdict = Drops
		}
	case *expr.Counter, *expr.Log, *expr.Immediate, *expr.Objref:
	default: // such as a limit
		r.match(Match{})
	}
}

func (r *ruleReader) match(m Match) { r.rule.Matches = append(r.rule.Matches, m) }

func (r *ruleReader) verdict(v *expr.Verdict) {
	switch v.Kind {
	case expr.VerdictDrop:
		r.rule.Verdict = Drops
	case expr.VerdictAccept:
		r.rule.Verdict = Accepts
	case expr.VerdictReturn:
		r.rule.Verdict = Returns
	case expr.VerdictJump:
		r.rule.Verdict, r.target = Jumps, v.Chain
	case expr.VerdictGoto:
		r.rule.Verdict, r.target = Gotos, v.Chain
	}
}

// compare reads a comparison of what is loaded.
func (r *ruleReader) compare(l load, op expr.CmpOp, data []byte) {
	equal := op == expr.CmpOpEq || op == expr.CmpOpNeq
	m := Match{Not: op == expr.CmpOpNeq}
	switch from := l.from.(type) {
	case *expr.Meta:
		switch {
		case isLink(from.Key) && equal && l.mask == nil:
			r.rule.Links = append(r.rule.Links, linkOf(from.Key, m.Not, data))
			return
		case from.Key == expr.MetaKeyNFPROTO && equal && l.mask == nil, from.Key == expr.MetaKeyPROTOCOL && equal && l.mask == nil:
			if ipv4(from.Key, data) == m.Not {
				r.match(Match{Field: Never})
			}
			return
		case from.Key == expr.MetaKeyL4PROTO && equal && l.mask == nil && len(data) == 1:
			m.Field, m.Proto = ByProtocol, data[0]
		}
	case *expr.Payload:
		m = payload(from, l.mask, op, data)
	case *expr.Ct:
		m = states(from, l.mask, op, data)
	}
	r.match(m)
}

// states reads a comparison of the state: that it is one of some, written as a mask and "not zero", or that it
// is one.
func states(ct *expr.Ct, mask []byte, op expr.CmpOp, data []byte) Match {
	if ct.Key != expr.CtKeySTATE || op != expr.CmpOpEq && op != expr.CmpOpNeq || len(data) != 4 {
		return Match{}
	}
	if mask == nil {
		return Match{Field: ByState, States: binaryutil.NativeEndian.Uint32(data), Not: op == expr.CmpOpNeq}
	}
	if !zero(data) || len(mask) != 4 {
		return Match{}
	}
	return Match{Field: ByState, States: binaryutil.NativeEndian.Uint32(mask), Not: op == expr.CmpOpEq}
}

const (
	protocolAt = 9 // in an IPv4 header
	dportAt    = 2 // in the header of TCP and UDP
)

// payload reads a comparison of a header's field.
func payload(p *expr.Payload, mask []byte, op expr.CmpOp, data []byte) Match {
	m := Match{Not: op == expr.CmpOpNeq}
	equal := op == expr.CmpOpEq || op == expr.CmpOpNeq
	switch {
	case p.Base == expr.PayloadBaseNetworkHeader && (p.Offset == saddrAt || p.Offset == daddrAt) && p.Len <= 4 && equal:
		prefix, ok := prefixOf(data, mask, int(p.Len))
		if !ok {
			return Match{}
		}
		m.Field, m.Prefix = BySource, prefix
		if p.Offset == daddrAt {
			m.Field = ByDestination
		}
	case p.Base == expr.PayloadBaseNetworkHeader && p.Offset == protocolAt && p.Len == 1 && mask == nil && equal && len(data) == 1:
		m.Field, m.Proto = ByProtocol, data[0]
	case p.Base == expr.PayloadBaseTransportHeader && p.Offset == dportAt && p.Len == 2 && mask == nil && len(data) == 2:
		return portsBy(op, binaryutil.BigEndian.Uint16(data))
	default:
		return Match{}
	}
	return m
}

// portsBy are the ports for which the comparison with port holds.
func portsBy(op expr.CmpOp, port uint16) Match {
	m := Match{Field: ByPort, Ports: [2]uint16{port, port}}
	switch op {
	case expr.CmpOpNeq:
		m.Not = true
	case expr.CmpOpLte:
		m.Ports[0] = 0
	case expr.CmpOpGte:
		m.Ports[1] = 0xffff
	case expr.CmpOpLt, expr.CmpOpGt: // the tools write these as "<=" and ">="
		return Match{}
	}
	return m
}

// prefixOf is the range of addresses whose first bytes, under the mask, are data; ok is false if they are no range.
// A range of whole bytes is compared without a mask, by these bytes alone.
func prefixOf(data, mask []byte, length int) (p netip.Prefix, ok bool) {
	if len(data) < length || length == 0 {
		return p, false
	}
	bits := 8 * length
	if mask != nil {
		ones, all := net.IPMask(mask).Size()
		if all == 0 {
			return p, false
		}
		bits = ones
	}
	var addr [4]byte
	copy(addr[:], data[:length])
	return netip.PrefixFrom(netip.AddrFrom4(addr), bits).Masked(), true
}

// inRange reads a comparison with a range.
func (r *ruleReader) inRange(l load, e *expr.Range) {
	p, ok := l.from.(*expr.Payload)
	if ok && p.Base == expr.PayloadBaseTransportHeader && p.Offset == dportAt && p.Len == 2 && l.mask == nil && len(e.FromData) == 2 && len(e.ToData) == 2 {
		r.match(Match{Field: ByPort, Not: e.Op == expr.CmpOpNeq,
			Ports: [2]uint16{binaryutil.BigEndian.Uint16(e.FromData), binaryutil.BigEndian.Uint16(e.ToData)}})
		return
	}
	r.match(Match{})
}

// extension reads a match extension of iptables.
func (r *ruleReader) extension(e *expr.Match) {
	switch info := e.Info.(type) {
	case *xt.Comment:
	case *xt.Tcp:
		plain := info.FlagsMask == 0 && info.Option == 0 && info.InvFlags&^xt.TcpInvDestPorts == 0
		r.ports(plain, info.SrcPorts, info.DstPorts, info.InvFlags&xt.TcpInvDestPorts != 0)
	case *xt.Udp:
		r.ports(info.InvFlags&^xt.UdpInvDestPorts == 0, info.SrcPorts, info.DstPorts, info.InvFlags&xt.UdpInvDestPorts != 0)
	case *xt.ConntrackMtinfo1:
		r.tracked(info.ConntrackMtinfoBase, uint32(info.StateMask))
	case *xt.ConntrackMtinfo2:
		r.tracked(info.ConntrackMtinfoBase, uint32(info.StateMask))
	case *xt.ConntrackMtinfo3:
		r.tracked(info.ConntrackMtinfoBase, uint32(info.StateMask))
	default:
		r.match(Match{})
	}
}

func (r *ruleReader) ports(plain bool, source, dest [2]uint16, not bool) {
	if !plain || source != [2]uint16{0, 0xffff} {
		r.match(Match{})
	}
	r.match(Match{Field: ByPort, Ports: dest, Not: not})
}

func (r *ruleReader) tracked(base xt.ConntrackMtinfoBase, states uint32) {
	if base.MatchFlags != uint16(xt.ConntrackState) {
		r.match(Match{})
		return
	}
	r.match(Match{Field: ByState, States: states, Not: base.InvertFlags&uint16(xt.ConntrackState) != 0})
}

func zero(data []byte) bool { return len(bytes.Trim(data, "\x00")) == 0 }

func ipv4(key expr.MetaKey, data []byte) bool {
	if key == expr.MetaKeyNFPROTO {
		return bytes.Equal(data, []byte{unix.NFPROTO_IPV4})
	}
	return bytes.Equal(data, []byte{0x08, 0x00})
}

func isLink(key expr.MetaKey) bool {
	switch key {
	case expr.MetaKeyIIFNAME, expr.MetaKeyOIFNAME, expr.MetaKeyIIF, expr.MetaKeyOIF:
		return true
	}
	return false
}

func linkOf(key expr.MetaKey, not bool, data []byte) Link {
	l := Link{Out: key == expr.MetaKeyOIFNAME || key == expr.MetaKeyOIF, Not: not}
	if key == expr.MetaKeyIIF || key == expr.MetaKeyOIF {
		if len(data) == 4 {
			if i, err := net.InterfaceByIndex(int(binaryutil.NativeEndian.Uint32(data))); err == nil {
				l.Name = i.Name
			}
		}
		return l
	}
	name, _, whole := bytes.Cut(data, []byte{0})
	l.Name, l.Prefix = string(name), !whole
	return l
}
