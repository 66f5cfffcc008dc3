package nft

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"strings"

	"github.com/google/nftables"
)

// Type is the type of a field of a set's key or value.
type Type int

// The types. In a key of several fields each takes four bytes; shorter values are at the start of them.
const (
	Address  Type = iota // IPv4
	Protocol             // of layer 4
	Port
	Number  // four bytes, in the host's order; the nft tool calls it a mark
	ToChain // the value of a verdict map: an Element's Goto
)

var types = map[Type]struct {
	text string
	data nftables.SetDatatype
}{
	Address:  {"ipv4_addr", nftables.TypeIPAddr},
	Protocol: {"inet_proto", nftables.TypeInetProto},
	Port:     {"inet_service", nftables.TypeInetService},
	Number:   {"mark", nftables.TypeMark},
	ToChain:  {"verdict", nftables.TypeVerdict},
}

// Table is a table of family ip as it should be.
type Table struct {
	Name   string
	Sets   []Set
	Chains []Chain
	// Guests is a prefix of the names of sets and chains that another package keeps in the table: Sync does not touch
	// them. Empty: there are none.
	Guests string
	// Guest is for such a package: a prefix of the names of what it keeps in another's table. Sync touches nothing else
	// there. Empty: all of the table is meant.
	Guest string
}

// foreign reports whether a set or chain of this name is none of those that t is about.
func (t Table) foreign(name string) bool {
	return t.Guests != "" && strings.HasPrefix(name, t.Guests) || !strings.HasPrefix(name, t.Guest)
}

// Set is a set, or a map if Value has types. The elements of a set of Ranges are made by Range.
type Set struct {
	Name       string
	Key, Value []Type
	Ranges     bool
	// Dynamic sets are filled by rules, with elements that time out; they have at most Size. Sync does not compare
	// their elements.
	Dynamic  bool
	Size     int
	Elements []Element
}

// Element is an element of the named set, with its fields in network byte order. Several fields are padded to four bytes
// each.
type Element struct {
	Set        string
	Key, Value []byte
	End        bool   // of a range: the first key after it
	Goto       string // the chain to which an element of a verdict map leads
}

// Range is the elements of a range of IPv4 addresses: where it starts and, unless it is the last one, where it ends.
// The ranges of a set must not overlap.
func Range(set string, p netip.Prefix) []Element {
	start := p.Masked().Addr().As4()
	out := []Element{{Set: set, Key: start[:]}}
	if after := uint64(binary.BigEndian.Uint32(start[:])) + 1<<(32-p.Bits()); after <= math.MaxUint32 {
		out = append(out, Element{Set: set, Key: binary.BigEndian.AppendUint32(nil, uint32(after)), End: true})
	}
	return out
}

// Hook is the netfilter hook of a base chain.
type Hook string

// The hooks of families ip and inet.
const (
	Prerouting  Hook = "prerouting"
	Input       Hook = "input"
	Forward     Hook = "forward"
	Output      Hook = "output"
	Postrouting Hook = "postrouting"
)

// Chain is a base chain, with the policy accept; without a Hook it is one to which rules and verdict maps lead.
type Chain struct {
	Name     string
	NAT      bool // of type nat, else filter
	Hook     Hook
	Priority int
	Rules    []Rule
}

// Priorities that have names in netfilter.
const (
	PriorityRaw    = -300
	PriorityDstNAT = -100
	PrioritySrcNAT = 100
)

// String is the table, without its elements, as the nft tool writes it.
func (t Table) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "table ip %s {\n", t.Name)
	for _, s := range t.Sets {
		kind, of := "set", typesText(s.Key)
		if len(s.Value) > 0 {
			kind, of = "map", of+" : "+typesText(s.Value)
		}
		fmt.Fprintf(&b, "\t%s %s {\n\t\ttype %s\n", kind, s.Name, of)
		switch {
		case s.Ranges:
			b.WriteString("\t\tflags interval\n")
		case s.Dynamic:
			fmt.Fprintf(&b, "\t\tsize %d\n\t\tflags dynamic,timeout\n", s.Size)
		}
		b.WriteString("\t}\n")
	}
	for _, c := range t.Chains {
		kind := "filter"
		if c.NAT {
			kind = "nat"
		}
		fmt.Fprintf(&b, "\tchain %s {\n", c.Name)
		if c.Hook != "" {
			fmt.Fprintf(&b, "\t\ttype %s hook %s priority %d; policy accept;\n", kind, c.Hook, c.Priority)
		}
		for _, r := range c.Rules {
			fmt.Fprintf(&b, "\t\t%s\n", r)
		}
		b.WriteString("\t}\n")
	}
	b.WriteString("}\n")
	return b.String()
}

func typesText(list []Type) string {
	words := make([]string, len(list))
	for i, t := range list {
		words[i] = types[t].text
	}
	return strings.Join(words, " . ")
}

// Ruleset is the kernel's packet filter in one network namespace. Its methods are safe for concurrent use.
type Ruleset interface {
	// Apply puts a table in place of one of that name, in one transaction.
	Apply(t Table) error
	// Change adds elements to the sets of a table, or removes them, in one transaction. Removing one that does not
	// exist is not an error.
	Change(table string, add bool, list []Element) error
	// Edit changes a table that exists, in one transaction. What it removes has to be there.
	Edit(table string, e Edit) error
	// Sync makes a table equal to t by one transaction that changes only what differs, and makes it if there is none.
	// It reports whether anything differed. It needs no memory of what an earlier process has applied.
	Sync(t Table) (changed bool, err error)
	// Elements lists those of a set, also of a dynamic one.
	Elements(t Table, set string) ([]Element, error)
	// Walker makes a Walker through the table that there is; t says its sets and base chains.
	Walker(t Table, local func(netip.Addr) bool) *Walker
	// Same reports whether a table is as Apply left it, with the elements that t has now.
	Same(t Table) (bool, error)
	// Chains lists the chains of each table of family ip whose name has this prefix.
	Chains(prefix string) (map[string][]string, error)
	// Delete removes a table. It is not an error if there is none.
	Delete(table string) error
	// Others lists the filtering base chains of all tables whose names do not have the prefix except.
	Others(except string) ([]BaseChain, error)
	// Admit inserts accepting rules at the head of a base chain of another table. They replace rules with the same
	// tag.
	Admit(c BaseChain, tag string, list []Accept) error
}
