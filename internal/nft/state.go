package nft

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// state is a table in a form that can be compared, whether it is a wanted one or the kernel's.
type state struct {
	sets   map[string]setState
	chains map[string]chainState
}

type setState struct {
	kind     string                // what cannot be changed
	elements map[elementKey]string // the values
}

type elementKey struct {
	key string
	end bool
}

type chainState struct {
	kind  string // of a base chain: hook and priority
	rules string
}

func valueOf(e Element) string {
	if e.Goto != "" {
		return "goto " + e.Goto
	}
	return string(e.Value)
}

// stateOf is a wanted table as state.
func stateOf(t Table) (state, error) {
	out := state{map[string]setState{}, map[string]chainState{}}
	for _, s := range t.Sets {
		set, err := s.kernel(table(t.Name))
		if err != nil {
			return out, fmt.Errorf("nftables: set %s: %w", s.Name, err)
		}
		elements := make(map[elementKey]string, len(s.Elements))
		for _, e := range s.Elements {
			elements[elementKey{string(e.Key), e.End}] = valueOf(e)
		}
		out.sets[s.Name] = setState{setKind(set), elements}
	}
	for _, c := range t.Chains {
		var rules strings.Builder
		for _, r := range c.Rules {
			text, err := canonical(r.exprs())
			if err != nil {
				return out, fmt.Errorf("nftables: chain %s: %s: %w", c.Name, r, err)
			}
			rules.WriteString(text)
		}
		out.chains[c.Name] = chainState{chainKind(c.kernel(table(t.Name))), rules.String()}
	}
	return out, nil
}

func setKind(s *nftables.Set) string {
	key := s.KeyType.Name
	if s.IsMap && s.KeyType.Bytes == 0 || s.DataType.Bytes == 0 && s.IsMap {
		key = "any" // the library reads the key's type of a verdict map as verdict
	}
	return fmt.Sprint(key, s.IsMap, s.Interval, s.Dynamic, s.HasTimeout, s.Size)
}

func chainKind(c *nftables.Chain) string {
	if c.Hooknum == nil || c.Priority == nil {
		return ""
	}
	return fmt.Sprint(c.Type, *c.Hooknum, *c.Priority)
}

// difference is what makes the kernel's table the wanted one. whole: nothing less than making all of it anew does.
func difference(t Table, want, have state) (e Edit, whole bool) {
	for _, name := range slices.Sorted(maps.Keys(have.sets)) {
		if _, ok := want.sets[name]; !ok && !t.foreign(name) {
			e.GoneSets = append(e.GoneSets, name)
		}
	}
	for _, s := range t.Sets {
		is, ok := have.sets[s.Name]
		switch {
		case !ok:
			e.Sets = append(e.Sets, s)
		case is.kind != want.sets[s.Name].kind:
			return e, true
		}
		if s.Dynamic {
			continue
		}
		wanted := want.sets[s.Name].elements
		for k, v := range is.elements {
			if w, ok := wanted[k]; !ok || w != v {
				e.Removed = append(e.Removed, Element{Set: s.Name, Key: []byte(k.key), End: k.end, Goto: strings.TrimPrefix(v, "goto ")}.without(s))
			}
		}
		for _, el := range s.Elements {
			k := elementKey{string(el.Key), el.End}
			if v, ok := is.elements[k]; !ok || v != wanted[k] {
				e.Added = append(e.Added, el)
			}
		}
	}
	for _, c := range t.Chains {
		is, ok := have.chains[c.Name]
		if is.kind != want.chains[c.Name].kind { // also where there is no table
			return e, true
		}
		if !ok || is != want.chains[c.Name] {
			e.Chains = append(e.Chains, c)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(have.chains)) {
		if _, ok := want.chains[name]; !ok && !t.foreign(name) {
			e.Gone = append(e.Gone, name)
		}
	}
	return e, false
}

// without is an element to remove: by its key alone, unless it is a verdict map's.
func (e Element) without(s Set) Element {
	if len(s.Value) == 0 || s.Value[0] != ToChain {
		e.Goto = ""
	}
	return e
}

// canonical is a list of expressions as text, the same for those that we send and those that the kernel lists.
func canonical(list []expr.Any) (string, error) {
	var out strings.Builder
	for _, e := range list {
		b, err := expr.Marshal(unix.NFPROTO_IPV4, e)
		if err != nil {
			return "", err
		}
		text, err := canonicalExpr(b)
		if err != nil {
			return "", err
		}
		out.WriteString(text)
	}
	return out.String() + "\n", nil
}

// canonicalExpr is one marshalled expression as text.
func canonicalExpr(b []byte) (string, error) {
	attrs, err := netlink.UnmarshalAttributes(b)
	if err != nil {
		return "", err
	}
	var name string
	var data []byte
	for _, a := range attrs {
		switch a.Type &^ unix.NLA_F_NESTED {
		case unix.NFTA_EXPR_NAME:
			name = strings.TrimRight(string(a.Data), "\x00")
		case unix.NFTA_EXPR_DATA:
			data = a.Data
		}
	}
	if name == "ct" {
		return canonicalCt(data)
	}
	e := empty(name)
	if e == nil {
		return fmt.Sprintf("%s %x\n", name, data), nil
	}
	if err := expr.Unmarshal(unix.NFPROTO_IPV4, data, e); err != nil {
		return "", err
	}
	switch e := e.(type) {
	case *expr.Counter:
		return "counter\n", nil
	case *expr.NAT: // the kernel lists the ends of ranges also where there are none
		if e.RegAddrMax == e.RegAddrMin {
			e.RegAddrMax = 0
		}
		if e.RegProtoMax == e.RegProtoMin {
			e.RegProtoMax = 0
		}
	case *expr.Immediate:
		if e.Register == unix.NFT_REG_VERDICT {
			v := &expr.Verdict{}
			if err := expr.Unmarshal(unix.NFPROTO_IPV4, data, v); err != nil {
				return "", err
			}
			return fmt.Sprintf("%+v\n", v), nil
		}
	}
	return fmt.Sprintf("%s %+v\n", name, e), nil
}

// canonicalCt is an expression of conntrack. The library cannot read its direction: the kernel's is one byte, and the
// library's four, of which the kernel takes the first.
func canonicalCt(data []byte) (string, error) {
	attrs, err := netlink.UnmarshalAttributes(data)
	if err != nil {
		return "", err
	}
	slices.SortFunc(attrs, func(a, b netlink.Attribute) int { return cmp.Compare(a.Type, b.Type) })
	var out strings.Builder
	out.WriteString("ct")
	for _, a := range attrs {
		if a.Type == unix.NFTA_CT_DIRECTION && len(a.Data) > 0 {
			a.Data = a.Data[:1]
		}
		fmt.Fprintf(&out, " %d=%x", a.Type, a.Data)
	}
	return out.String() + "\n", nil
}

// empty is an expression with this name; nil if rules of ours have none such.
func empty(name string) expr.Any {
	switch name {
	case "bitwise":
		return &expr.Bitwise{}
	case "cmp":
		return &expr.Cmp{}
	case "counter":
		return &expr.Counter{}
	case "dynset":
		return &expr.Dynset{}
	case "fib":
		return &expr.Fib{}
	case "immediate":
		return &expr.Immediate{}
	case "lookup":
		return &expr.Lookup{}
	case "masq":
		return &expr.Masq{}
	case "meta":
		return &expr.Meta{}
	case "nat":
		return &expr.NAT{}
	case "numgen":
		return &expr.Numgen{}
	case "payload":
		return &expr.Payload{}
	case "reject":
		return &expr.Reject{}
	}
	return nil
}
