package nft

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

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

// Walker sends packets through a table of ours. It evaluates the very expressions that the kernel has, or gets.
type Walker struct {
	rules  rules
	local  func(netip.Addr) bool
	turns  map[*expr.Numgen]uint32
	most   uint32                     // the largest modulus of a turn that was met
	known  map[string]map[string]bool // clients that were remembered on the way
	forget bool                       // clients are neither remembered nor known
	// Known is set when a packet's source was a remembered client.
	Known bool
	// Way are the rules that matched on the last packet's way, each after its chain's name.
	Way []string
}

// NewWalker makes one of a table as data. local says which addresses are the host's. Turns and remembered clients are the
// Walker's own.
func NewWalker(t Table, local func(netip.Addr) bool) *Walker { return newWalker(newData(t), local) }

func newWalker(r rules, local func(netip.Addr) bool) *Walker {
	return &Walker{rules: r, local: local, turns: map[*expr.Numgen]uint32{}, known: map[string]map[string]bool{}}
}

// Send sends a packet through the chains of a hook. The error is of a table that the kernel would refuse, or of a rule
// that the Walker does not know.
func (w *Walker) Send(h Hook, p Packet) (Packet, Outcome, error) {
	w.Way = nil
	chains, err := w.rules.base(h)
	if err != nil {
		return p, "", err
	}
	for _, c := range chains {
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

// maxTurns bounds how many packets SendAll sends.
const maxTurns = 1 << 14

// SendAll sends the same packet until each turn that it meets has been taken, and returns all the destinations that it gets,
// in the order of turns, and all outcomes. It is that of a client which nobody remembers, and no client is remembered by it.
func (w *Walker) SendAll(h Hook, p Packet) (to []netip.AddrPort, outcomes []Outcome, err error) {
	w.forget = true
	defer func() { w.forget = false }()
	for i := uint32(0); i < min(max(1, 2*w.most), maxTurns); i++ { // twice: of several turns one after another, not each is met at once
		q, outcome, err := w.Send(h, p)
		if err != nil {
			return nil, nil, err
		}
		if outcome == Redirected && !slices.Contains(to, q.To) {
			to = append(to, q.To)
		}
		if !slices.Contains(outcomes, outcome) {
			outcomes = append(outcomes, outcome)
		}
	}
	return to, outcomes, nil
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
				to, ok, err := w.rules.chain(m.jump)
				if err != nil {
					return "", false, err
				} else if !ok {
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
		if c, ok, err = w.rules.chain(next); err != nil {
			return "", false, err
		} else if !ok {
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
		m.most = max(m.most, e.Modulus)
		m.store(e.Register, number(n%e.Modulus))
		return true, nil
	case *expr.Immediate:
		m.store(e.Register, e.Data)
		return true, nil
	case *expr.Lookup:
		return m.lookup(e)
	case *expr.Dynset:
		if i := at(e.SrcRegKey); !m.forget {
			if m.known[e.SetName] == nil {
				m.known[e.SetName] = map[string]bool{}
			}
			m.known[e.SetName][string(m.regs[i:i+4])] = true
		}
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
	size := m.rules.size(e.SetName)
	if size == 0 {
		return false, fmt.Errorf("set %s does not exist", e.SetName)
	}
	i := at(e.SourceRegister)
	key := m.regs[i : i+size]
	el, found, err := m.rules.element(e.SetName, key)
	if err != nil {
		return false, err
	}
	if m.rules.dynamic(e.SetName) {
		found = !m.forget && (found || m.known[e.SetName][string(key)])
		m.Known = m.Known || found
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
