package nft

import (
	"bytes"
	"fmt"
	"net"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Verdict is what a rule in a table of others does with a packet, as netfilter calls it.
type Verdict int

// The verdicts. After any other statement the packet goes on to the next rule.
const (
	GoOn Verdict = iota
	Accepts
	Drops // or rejects
	Jumps
	Gotos
	Returns
)

// BaseChain is a filtering base chain in a table of others, with the chains it jumps to.
type BaseChain struct {
	Family string // ip or inet
	Table  string
	Name   string
	Hook   Hook
	Drops  bool // its policy
	Rules  []OtherRule
}

// OtherRule is what of a rule is needed to say whether it stops all traffic by a link.
type OtherRule struct {
	Chain   string
	Handle  uint64
	Comment string
	Verdict Verdict
	// Narrow says that it matches on more than links: addresses, ports, states, marks. A narrow rule that drops is
	// taken to be meant, and is not looked at further.
	Narrow bool
	// Links that it matches; none: all links.
	Links []Link
	Into  []OtherRule // of the chain that it jumps to
}

// Link is a match on the link that a packet comes or leaves by.
type Link struct {
	Out    bool
	Name   string
	Prefix bool // Name is the beginning of the names
	Not    bool // it matches all other links
}

// String names the chain as the nft tool does.
func (c BaseChain) String() string {
	return fmt.Sprintf("table %s %s chain %s", c.Family, c.Table, c.Name)
}

// Iptables says whether the chain is kept by iptables, whose chains have names in capitals.
func (c BaseChain) Iptables() bool {
	return c.Family == "ip" && (c.Table == "filter" || c.Table == "mangle" || c.Table == "raw" || c.Table == "security") && c.Name == strings.ToUpper(c.Name)
}

// Stop is where a chain stops traffic.
type Stop struct {
	Index int    // among the chain's own rules; len(Rules) is the policy
	Where string // for people
}

// Stops is the first rule, or the policy, that drops all packets coming or leaving by a link for which matters is true;
// nil if there is none. Rules with the tag, and narrow ones, are left out.
func (c BaseChain) Stops(tag string, matters func(Link) bool) *Stop {
	for i, r := range c.Rules {
		if strings.HasPrefix(r.Comment, tag) || r.Narrow || !applies(r, matters) {
			continue
		}
		end, where := follow(r, matters)
		switch {
		case end == Drops:
			return &Stop{i, c.String() + where}
		case end == Accepts && len(r.Links) == 0:
			return nil
		case r.Verdict == Gotos && len(r.Links) == 0: // at the end of that chain the policy applies
			if c.Drops {
				return &Stop{i, c.String() + ", policy drop"}
			}
			return nil
		}
	}
	if c.Drops {
		return &Stop{len(c.Rules), c.String() + ", policy drop"}
	}
	return nil
}

func applies(r OtherRule, matters func(Link) bool) bool {
	for _, l := range r.Links {
		if !matters(l) {
			return false
		}
	}
	return true
}

// follow says what becomes of a packet that a rule matches: GoOn, Accepts or Drops.
func follow(r OtherRule, matters func(Link) bool) (end Verdict, where string) {
	switch r.Verdict {
	case Drops:
		where = fmt.Sprintf(", rule with handle %d drops", r.Handle)
		if r.Comment != "" {
			where += fmt.Sprintf(" (%s)", r.Comment)
		}
		return Drops, where
	case Accepts:
		return Accepts, ""
	case Jumps, Gotos:
		for _, in := range r.Into {
			if in.Narrow || !applies(in, matters) {
				continue
			}
			if in.Verdict == Returns && len(in.Links) == 0 {
				return GoOn, ""
			}
			end, where := follow(in, matters)
			switch {
			case end == Drops && strings.HasPrefix(where, ", rule"):
				return Drops, ", by chain " + in.Chain + where
			case end == Drops, end == Accepts && len(in.Links) == 0:
				return end, where
			}
		}
	}
	return GoOn, ""
}

var families = map[string]nftables.TableFamily{"ip": nftables.TableFamilyIPv4, "inet": nftables.TableFamilyINet}

// maxDepth bounds how deep jumps are followed; the kernel allows 16.
const maxDepth = 16

// Others implements Ruleset.
func (k *Kernel) Others(except string) ([]BaseChain, error) {
	c, err := nftables.New()
	if err != nil {
		return nil, fmt.Errorf("nftables: %w", err)
	}
	var out []BaseChain
	for name, family := range families {
		chains, err := c.ListChainsOfTableFamily(family)
		if err != nil {
			return nil, fmt.Errorf("nftables: chains: %w", err)
		}
		for _, ch := range chains {
			if ch.Hooknum == nil || ch.Type != nftables.ChainTypeFilter || strings.HasPrefix(ch.Table.Name, except) {
				continue
			}
			hook, ok := hookOf(*ch.Hooknum)
			if !ok || hook == Prerouting || hook == Postrouting {
				continue
			}
			b := BaseChain{Family: name, Table: ch.Table.Name, Name: ch.Name, Hook: hook,
				Drops: ch.Policy != nil && *ch.Policy == nftables.ChainPolicyDrop}
			b.Rules = readRules(c, &nftables.Table{Family: family, Name: ch.Table.Name}, ch.Name, map[string][]OtherRule{}, 0)
			out = append(out, b)
		}
	}
	return out, nil
}

func hookOf(n nftables.ChainHook) (Hook, bool) {
	for h, num := range hookNumbers {
		if num == n {
			return h, true
		}
	}
	return "", false
}

// readRules reads a chain and those that it jumps to, each once. A chain that has gone meanwhile or that
// cannot be read is an empty one: a change of it is told, and it is read again.
func readRules(c *nftables.Conn, t *nftables.Table, chain string, known map[string][]OtherRule, depth int) []OtherRule {
	if have, ok := known[chain]; ok || depth > maxDepth {
		return have
	}
	known[chain] = nil
	list, err := c.GetRules(t, &nftables.Chain{Name: chain, Table: t})
	if err != nil {
		return nil
	}
	out := make([]OtherRule, 0, len(list))
	for _, r := range list {
		o, target := readRule(r)
		o.Chain = chain
		if target != "" && !o.Narrow { // what a narrow rule leads to does not matter
			o.Into = readRules(c, t, target, known, depth+1)
		}
		out = append(out, o)
	}
	known[chain] = out
	return out
}

// readRule reads one rule, and the chain that it jumps to, if any.
func readRule(r *nftables.Rule) (o OtherRule, target string) {
	o = OtherRule{Handle: r.Handle, Comment: commentOf(r)}
	loaded := map[uint32]*expr.Meta{} // what is in a register, if it is a link
	for _, e := range r.Exprs {
		switch e := e.(type) {
		case *expr.Meta:
			delete(loaded, e.Register)
			if !e.SourceRegister {
				loaded[e.Register] = e
			}
		case *expr.Cmp:
			m := loaded[e.Register]
			switch {
			case m == nil:
				o.Narrow = true
			case m.Key == expr.MetaKeyNFPROTO || m.Key == expr.MetaKeyPROTOCOL:
				// Of the other family it is none of ours.
				o.Narrow = o.Narrow || e.Op != expr.CmpOpEq || !ipv4(m.Key, e.Data)
			default:
				l, ok := linkOf(m.Key, e)
				if o.Narrow = o.Narrow || !ok; ok {
					o.Links = append(o.Links, l)
				}
			}
		case *expr.Lookup:
			m := loaded[e.SourceRegister]
			// A set of links that is not read is taken to have those that matter.
			o.Narrow = o.Narrow || e.IsDestRegSet || m == nil || !isLink(m.Key)
		case *expr.Verdict:
			switch e.Kind {
			case expr.VerdictDrop:
				o.Verdict = Drops
			case expr.VerdictAccept:
				o.Verdict = Accepts
			case expr.VerdictReturn:
				o.Verdict = Returns
			case expr.VerdictJump:
				o.Verdict, target = Jumps, e.Chain
			case expr.VerdictGoto:
				o.Verdict, target = Gotos, e.Chain
			}
		case *expr.Reject:
			o.Verdict = Drops
		case *expr.Target:
			if e.Name == "REJECT" || e.Name == "DROP" {
				o.Verdict = Drops
			}
		case *expr.Match:
			o.Narrow = o.Narrow || e.Name != "comment"
		case *expr.Payload:
			delete(loaded, e.DestRegister)
		case *expr.Bitwise:
			delete(loaded, e.DestRegister)
		case *expr.Counter, *expr.Log, *expr.Immediate, *expr.Objref:
		default: // also a limit: what is beyond a rate was meant to go
			o.Narrow = true
		}
	}
	return o, target
}

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

func linkOf(key expr.MetaKey, c *expr.Cmp) (Link, bool) {
	if !isLink(key) || c.Op != expr.CmpOpEq && c.Op != expr.CmpOpNeq {
		return Link{}, false
	}
	l := Link{Out: key == expr.MetaKeyOIFNAME || key == expr.MetaKeyOIF, Not: c.Op == expr.CmpOpNeq}
	if key == expr.MetaKeyIIF || key == expr.MetaKeyOIF {
		if len(c.Data) == 4 {
			if i, err := net.InterfaceByIndex(int(binaryutil.NativeEndian.Uint32(c.Data))); err == nil {
				l.Name = i.Name
			}
		}
		return l, true
	}
	name, _, whole := bytes.Cut(c.Data, []byte{0})
	l.Name, l.Prefix = string(name), !whole
	return l, true
}
