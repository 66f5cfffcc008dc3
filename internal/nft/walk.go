package nft

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Packet is the first packet of a connection, as it comes to a hook.
type Packet struct {
	Protocol byte
	From, To netip.AddrPort
	In, Out  string // links; none for packets of the host and to it
	DNAT     bool   // its destination was changed
	Reply    bool   // it is of a connection, and goes back
	Related  bool   // it belongs to a connection
}

// Outcome is what becomes of a packet in a hook.
type Outcome string

// The outcomes.
const (
	Passes      Outcome = "passes"
	Redirected  Outcome = "redirected" // its destination is changed
	Masqueraded Outcome = "masqueraded"
	Dropped     Outcome = "dropped"
	Reset       Outcome = "reset"
	Unreachable Outcome = "port unreachable"
)

// Walker sends packets through a table of ours, without a kernel. It evaluates the very expressions that the kernel gets.
type Walker struct {
	table  Table
	local  func(netip.Addr) bool
	chains map[string]Chain
	sets   map[string]map[string]Element
	turns  map[*expr.Numgen]uint32
	// Way are the rules that matched on the last packet's way, each after its chain's name.
	Way []string
}

// NewWalker makes one. local says which addresses are the host's. Turns and remembered clients are the Walker's own.
func NewWalker(t Table, local func(netip.Addr) bool) *Walker {
	w := &Walker{table: t, local: local, chains: map[string]Chain{}, sets: map[string]map[string]Element{}, turns: map[*expr.Numgen]uint32{}}
	for _, c := range t.Chains {
		w.chains[c.Name] = c
	}
	for _, s := range t.Sets {
		w.sets[s.Name] = map[string]Element{}
		for _, e := range s.Elements {
			w.sets[s.Name][string(e.Key)] = e
		}
	}
	return w
}

// Send sends a packet through the chains of a hook. The error is of a table that the kernel would refuse, or of a rule
// that the Walker does not know.
func (w *Walker) Send(h Hook, p Packet) (Packet, Outcome, error) {
	w.Way = nil
	for _, c := range w.table.Chains {
		if c.Hook != h {
			continue
		}
		outcome, err := w.through(c, &p, 0)
		if err != nil {
			return p, "", fmt.Errorf("chain %s: %w", c.Name, err)
		}
		if outcome != Passes {
			return p, outcome, nil
		}
	}
	return p, Passes, nil
}

// evaluation is of one rule.
type evaluation struct {
	*Walker
	p       *Packet
	regs    [64]byte
	next    string // the chain to go on in
	jump    string // the chain to go through first
	outcome Outcome
}

func (w *Walker) through(c Chain, p *Packet, depth int) (Outcome, error) {
	outcome, _, err := w.decided(c, p, depth)
	return outcome, err
}

// decided is through, and whether a verdict was reached: without one the calling chain goes on.
func (w *Walker) decided(c Chain, p *Packet, depth int) (_ Outcome, decided bool, err error) {
	for depth <= maxDepth {
		next := ""
		for _, r := range c.Rules {
			m := evaluation{Walker: w, p: p}
			matched := true
			for _, e := range r.exprs() {
				ok, err := m.eval(e)
				if err != nil {
					return "", false, fmt.Errorf("%s: %w", r, err)
				}
				if matched = ok; !ok {
					break
				}
			}
			if !matched {
				continue
			}
			w.Way = append(w.Way, c.Name+": "+r.String())
			if m.outcome != "" {
				return m.outcome, true, nil
			}
			if m.jump != "" {
				to, ok := w.chains[m.jump]
				if !ok {
					return "", false, fmt.Errorf("chain %s does not exist", m.jump)
				}
				if outcome, decided, err := w.decided(to, p, depth+1); decided || err != nil {
					return outcome, decided, err
				}
			}
			if next = m.next; next != "" {
				break
			}
		}
		if next == "" {
			return Passes, false, nil
		}
		var ok bool
		if c, ok = w.chains[next]; !ok {
			return "", false, fmt.Errorf("chain %s does not exist", next)
		}
		depth++
	}
	return "", false, fmt.Errorf("chains lead to each other more than %d times", maxDepth)
}

// at is where a register starts.
func at(reg uint32) int {
	if reg >= unix.NFT_REG32_00 {
		return int(reg-unix.NFT_REG32_00) * 4
	}
	return int(reg-unix.NFT_REG_1) * 16
}

// store writes data as the kernel does: the rest of the last register is zero.
func (m *evaluation) store(reg uint32, data []byte) {
	i := at(reg)
	clear(m.regs[i : i+(len(data)+3)/4*4])
	copy(m.regs[i:], data)
}

func number(n uint32) []byte { return binary.NativeEndian.AppendUint32(nil, n) }

// eval is one expression; ok is false where the rule does not match.
func (m *evaluation) eval(e expr.Any) (ok bool, err error) {
	switch e := e.(type) {
	case *expr.Payload:
		data, err := m.payload(e)
		m.store(e.DestRegister, data)
		return true, err
	case *expr.Meta:
		return true, m.meta(e)
	case *expr.Fib:
		return true, m.fib(e)
	case *expr.Ct:
		return true, m.track(e)
	case *expr.Bitwise:
		i, o := at(e.SourceRegister), make([]byte, e.Len)
		for j := range o {
			o[j] = m.regs[i+j]&e.Mask[j] ^ e.Xor[j]
		}
		m.store(e.DestRegister, o)
		return true, nil
	case *expr.Cmp:
		i := at(e.Register)
		switch order := bytes.Compare(m.regs[i:i+len(e.Data)], e.Data); e.Op {
		case expr.CmpOpGte:
			return order >= 0, nil
		case expr.CmpOpLte:
			return order <= 0, nil
		default:
			return (order == 0) == (e.Op == expr.CmpOpEq), nil
		}
	case *expr.Numgen:
		n := m.turns[e]
		m.turns[e] = (n + 1) % e.Modulus
		m.store(e.Register, number(n%e.Modulus))
		return true, nil
	case *expr.Immediate:
		m.store(e.Register, e.Data)
		return true, nil
	case *expr.Lookup:
		return m.lookup(e)
	case *expr.Dynset:
		i := at(e.SrcRegKey)
		m.sets[e.SetName][string(m.regs[i:i+4])] = Element{Set: e.SetName, Key: bytes.Clone(m.regs[i : i+4])}
		return true, nil
	case *expr.NAT:
		i, j := at(e.RegAddrMin), at(e.RegProtoMin)
		m.p.To = netip.AddrPortFrom(netip.AddrFrom4([4]byte(m.regs[i:i+4])), binary.BigEndian.Uint16(m.regs[j:]))
		m.p.DNAT, m.outcome = true, Redirected
		return true, nil
	case *expr.Masq:
		m.outcome = Masqueraded
	case *expr.Reject:
		if m.outcome = Unreachable; e.Type == unix.NFT_REJECT_TCP_RST {
			m.outcome = Reset
		}
	case *expr.Verdict:
		switch e.Kind {
		case expr.VerdictDrop:
			m.outcome = Dropped
		case expr.VerdictAccept:
			m.outcome = Passes
		case expr.VerdictGoto:
			m.next = e.Chain
		case expr.VerdictJump:
			m.jump = e.Chain
		default:
			return false, fmt.Errorf("the verdict %d is not known here", e.Kind)
		}
	default:
		return false, fmt.Errorf("%T is not known here", e)
	}
	return true, nil
}

func (m *evaluation) track(e *expr.Ct) error {
	value := map[bool]uint32{}
	switch e.Key {
	case expr.CtKeySTATUS:
		value[m.p.DNAT] = statusDNAT
		m.store(e.Register, number(value[true]))
	case expr.CtKeySTATE:
		value[m.p.Related] = expr.CtStateBitRELATED
		m.store(e.Register, number(value[true]))
	case expr.CtKeyDIRECTION:
		value[m.p.Reply] = directionReply
		m.store(e.Register, []byte{byte(value[true])})
	default:
		return fmt.Errorf("conntrack's %v is not known here", e.Key)
	}
	return nil
}

func (m *evaluation) payload(e *expr.Payload) ([]byte, error) {
	switch from, to := m.p.From.Addr().As4(), m.p.To.Addr().As4(); {
	case e.Base == expr.PayloadBaseNetworkHeader && e.Offset == saddrAt && e.Len == 4:
		return from[:], nil
	case e.Base == expr.PayloadBaseNetworkHeader && e.Offset == daddrAt && e.Len == 4:
		return to[:], nil
	case e.Base == expr.PayloadBaseTransportHeader && e.Offset == dportAt && e.Len == 2:
		return binary.BigEndian.AppendUint16(nil, m.p.To.Port()), nil
	}
	return nil, fmt.Errorf("what lies at %d of the header is not known here", e.Offset)
}

func (m *evaluation) meta(e *expr.Meta) error {
	name := make([]byte, unix.IFNAMSIZ)
	switch e.Key {
	case expr.MetaKeyL4PROTO:
		m.store(e.Register, []byte{m.p.Protocol})
	case expr.MetaKeyIIFNAME:
		copy(name, m.p.In)
		m.store(e.Register, name)
	case expr.MetaKeyOIFNAME:
		copy(name, m.p.Out)
		m.store(e.Register, name)
	default:
		return fmt.Errorf("meta %v is not known here", e.Key)
	}
	return nil
}

func (m *evaluation) fib(e *expr.Fib) error {
	if !e.ResultADDRTYPE || e.FlagIIF || e.FlagOIF {
		return fmt.Errorf("this look-up of a route is not known here")
	}
	addr, kind := m.p.To.Addr(), uint32(unix.RTN_UNICAST)
	if e.FlagSADDR {
		addr = m.p.From.Addr()
	}
	if m.local(addr) {
		kind = unix.RTN_LOCAL
	}
	m.store(e.Register, number(kind))
	return nil
}

func (m *evaluation) lookup(e *expr.Lookup) (bool, error) {
	set, ok := m.sets[e.SetName]
	if !ok {
		return false, fmt.Errorf("set %s does not exist", e.SetName)
	}
	size, ranges := 0, false
	for _, s := range m.table.Sets {
		if s.Name == e.SetName {
			ranges = s.Ranges
			size = 4 * len(s.Key)
			if len(s.Key) == 1 && s.Key[0] == Port {
				size = 2
			}
		}
	}
	i := at(e.SourceRegister)
	el, found := set[string(m.regs[i:i+size])]
	if ranges {
		found = inRanges(set, m.regs[i:i+size])
	}
	switch {
	case !e.IsDestRegSet:
		return found != e.Invert, nil
	case !found:
		return false, nil
	case e.DestRegister == unix.NFT_REG_VERDICT:
		m.next = el.Goto
	default:
		m.store(e.DestRegister, el.Value)
	}
	return true, nil
}

// inRanges reports whether the last end of a range at or before a key is the start of one.
func inRanges(set map[string]Element, key []byte) bool {
	var last *Element
	for _, el := range set {
		if bytes.Compare(el.Key, key) <= 0 && (last == nil || bytes.Compare(el.Key, last.Key) > 0) {
			last = &el
		}
	}
	return last != nil && !last.End
}
