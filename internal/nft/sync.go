package nft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Sync implements Ruleset.
func (k *Kernel) Sync(t Table) (changed bool, err error) {
	want, err := stateOf(t)
	if err != nil {
		return false, err
	}
	have, err := read(t)
	if err != nil {
		return false, err
	}
	e, whole := difference(t, want, have)
	switch {
	case whole:
		err = k.sockets.do(func(c *nftables.Conn) error { return t.rebuild(c, have) })
	case e.Empty():
		return false, nil
	default:
		err = k.sockets.do(func(c *nftables.Conn) error { return e.queue(c, table(t.Name)) })
	}
	if err != nil {
		return false, fmt.Errorf("nftables: table %s: %w", t.Name, err)
	}
	return true, k.complete(t)
}

// Equals reports whether the kernel's table is equal to t, and changes nothing.
func (k *Kernel) Equals(t Table) (bool, error) {
	want, err := stateOf(t)
	if err != nil {
		return false, err
	}
	have, err := read(t)
	if err != nil {
		return false, err
	}
	e, whole := difference(t, want, have)
	return e.Empty() && !whole, nil
}

// complete reads back how many elements there are: the kernel and the library have both lost some without an error.
func (k *Kernel) complete(t Table) error {
	for _, s := range t.Sets {
		if s.Dynamic {
			continue
		}
		have, err := k.Elements(t, s.Name)
		if err == nil && len(have) != len(s.Elements) {
			err = fmt.Errorf("nftables: table %s: set %s has %d elements, want %d", t.Name, s.Name, len(have), len(s.Elements))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rebuild removes all of the table that is ours, and makes it anew.
func (t Table) rebuild(c *nftables.Conn, have state) error {
	tab := table(t.Name)
	c.AddTable(tab)
	for name := range have.chains {
		if !t.foreign(name) {
			c.FlushChain(&nftables.Chain{Table: tab, Name: name})
		}
	}
	for name := range have.sets {
		if !t.foreign(name) {
			c.DelSet(&nftables.Set{Table: tab, Name: name})
		}
	}
	for name := range have.chains {
		if !t.foreign(name) {
			c.DelChain(&nftables.Chain{Table: tab, Name: name})
		}
	}
	var elements []Element
	t.Sets = slices.Clone(t.Sets)
	for i := range t.Sets {
		elements = append(elements, t.Sets[i].Elements...)
		t.Sets[i].Elements = nil
	}
	chains := t.Chains
	t.Chains = nil
	if err := t.queue(c, tab); err != nil {
		return err
	}
	return Edit{Chains: chains, Added: elements}.queue(c, tab)
}

// read is the kernel's table. One that does not exist is empty.
func read(t Table) (state, error) {
	out := state{map[string]setState{}, map[string]chainState{}}
	c, err := nftables.New()
	if err != nil {
		return out, fmt.Errorf("nftables: %w", err)
	}
	tab := table(t.Name)
	chains, err := c.ListChainsOfTableFamily(tab.Family)
	if err != nil {
		return out, fmt.Errorf("nftables: chains: %w", err)
	}
	rules, err := listRules(t.Name)
	if err != nil {
		return out, fmt.Errorf("nftables: table %s: rules: %w", t.Name, err)
	}
	for _, ch := range chains {
		if ch.Table.Name == t.Name {
			out.chains[ch.Name] = chainState{chainKind(ch), rules[ch.Name]}
		}
	}
	sets, err := c.GetSets(tab)
	if errors.Is(err, unix.ENOENT) || err != nil && len(out.chains) == 0 {
		return out, nil
	}
	if err != nil {
		return out, fmt.Errorf("nftables: table %s: sets: %w", t.Name, err)
	}
	for _, s := range sets {
		set := setState{setKind(s), nil}
		i := slices.IndexFunc(t.Sets, func(w Set) bool { return w.Name == s.Name })
		if i >= 0 && !t.Sets[i].Dynamic {
			list, err := elements(c, s)
			if err != nil {
				return out, fmt.Errorf("nftables: table %s: set %s: %w", t.Name, s.Name, err)
			}
			set.elements = make(map[elementKey]string, len(list))
			for _, e := range list {
				set.elements[elementKey{string(e.Key), e.End}] = valueOf(e)
			}
		}
		out.sets[s.Name] = set
	}
	return out, nil
}

// Elements implements Ruleset.
func (k *Kernel) Elements(t Table, set string) ([]Element, error) {
	c, err := nftables.New()
	if err != nil {
		return nil, fmt.Errorf("nftables: %w", err)
	}
	i := slices.IndexFunc(t.Sets, func(s Set) bool { return s.Name == set })
	if i < 0 {
		return nil, fmt.Errorf("nftables: table %s has no set %s", t.Name, set)
	}
	s, err := t.Sets[i].kernel(table(t.Name))
	if err != nil {
		return nil, fmt.Errorf("nftables: set %s: %w", set, err)
	}
	list, err := elements(c, s)
	if err != nil {
		return nil, fmt.Errorf("nftables: table %s: set %s: %w", t.Name, set, err)
	}
	return list, nil
}

func elements(c *nftables.Conn, s *nftables.Set) ([]Element, error) {
	list, err := c.GetSetElements(s)
	if err != nil {
		return nil, err
	}
	verdicts := s.IsMap && (s.KeyType.Bytes == 0 || s.DataType.Bytes == 0 || s.KeyType.Name == nftables.TypeVerdict.Name)
	out := make([]Element, len(list))
	for i, e := range list {
		out[i] = Element{Set: s.Name, Key: e.Key, Value: e.Val, End: e.IntervalEnd}
		if verdicts {
			out[i].Value = nil
			if out[i].Goto, err = gotoOf(e.Val); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// gotoOf is the chain to which a listed element leads. Of another verdict it is a text that is no chain's name.
func gotoOf(b []byte) (string, error) {
	attrs, err := netlink.UnmarshalAttributes(b)
	if err != nil {
		return "", err
	}
	code, chain := int32(0), ""
	for _, a := range attrs {
		switch a.Type {
		case unix.NFTA_VERDICT_CODE:
			code = int32(binary.BigEndian.Uint32(a.Data))
		case unix.NFTA_VERDICT_CHAIN:
			chain = strings.TrimRight(string(a.Data), "\x00")
		}
	}
	if expr.VerdictKind(code) != expr.VerdictGoto {
		return fmt.Sprintf("(verdict %d %s)", code, chain), nil
	}
	return chain, nil
}

// listRules lists the rules of all chains of a table, in one request, as canonical text. The library asks for each chain.
func listRules(name string) (map[string]string, error) {
	c, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	attr, err := netlink.MarshalAttributes([]netlink.Attribute{{Type: unix.NFTA_RULE_TABLE, Data: append([]byte(name), 0)}})
	if err != nil {
		return nil, err
	}
	list, err := c.Execute(netlink.Message{
		Header: netlink.Header{Type: unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETRULE, Flags: netlink.Request | netlink.Dump},
		Data:   append([]byte{unix.NFPROTO_IPV4, unix.NFNETLINK_V0, 0, 0}, attr...),
	})
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, m := range list {
		if len(m.Data) < 4 {
			continue
		}
		chain, text, err := readListed(m.Data[4:])
		if err != nil {
			return nil, err
		}
		out[chain] += text
	}
	return out, nil
}

func readListed(b []byte) (chain, text string, err error) {
	attrs, err := netlink.UnmarshalAttributes(b)
	if err != nil {
		return "", "", err
	}
	for _, a := range attrs {
		switch a.Type &^ unix.NLA_F_NESTED {
		case unix.NFTA_RULE_CHAIN:
			chain = strings.TrimRight(string(a.Data), "\x00")
		case unix.NFTA_RULE_EXPRESSIONS:
			list, err := netlink.UnmarshalAttributes(a.Data)
			if err != nil {
				return "", "", err
			}
			for _, e := range list {
				one, err := canonicalExpr(e.Data)
				if err != nil {
					return "", "", err
				}
				text += one
			}
			text += "\n"
		}
	}
	return chain, text, nil
}
