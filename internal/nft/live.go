package nft

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Walker makes a Walker through the table that the kernel has. What a packet meets is read when it meets it, so that it
// takes no more time where a table is large. Of t count the names, the kinds of sets and the names of base chains; rules
// that t has, too, are shown by their text. A table or base chain that is not there is an error of Send.
func (k *Kernel) Walker(t Table, local func(netip.Addr) bool) *Walker {
	l := &live{table: t, chains: map[string]Chain{}, found: map[string]*Element{}, texts: map[string]string{}}
	for _, c := range t.Chains {
		for _, r := range c.Rules {
			if text, err := canonical(r.exprs()); err == nil {
				l.texts[text] = r.String()
			}
		}
	}
	return newWalker(l, local)
}

// live is a table of the kernel, as far as it has been read.
type live struct {
	table  Table
	chains map[string]Chain
	found  map[string]*Element // by set and key; nil: there is none
	texts  map[string]string   // of rules, by their canonical form
}

func (l *live) base(h Hook) (out []Chain, _ error) {
	for _, c := range l.table.Chains {
		if c.Hook != h {
			continue
		}
		have, ok, err := l.chain(c.Name)
		if err != nil {
			return nil, err
		}
		if !ok || have.Hook == "" {
			return nil, fmt.Errorf("the kernel has no base chain %s in table %s", c.Name, l.table.Name)
		}
		have.Hook = h
		out = append(out, have)
	}
	return out, nil
}

func (l *live) chain(name string) (Chain, bool, error) {
	if c, ok := l.chains[name]; ok {
		return c, true, nil
	}
	conn, err := nftables.New()
	if err != nil {
		return Chain{}, false, fmt.Errorf("nftables: %w", err)
	}
	tab := table(l.table.Name)
	hooked, err := hasHook(tab.Name, name)
	if errors.Is(err, unix.ENOENT) {
		return Chain{}, false, nil
	}
	if err != nil {
		return Chain{}, false, fmt.Errorf("nftables: chain %s: %w", name, err)
	}
	list, err := conn.GetRules(tab, &nftables.Chain{Table: tab, Name: name})
	if err != nil {
		return Chain{}, false, fmt.Errorf("nftables: chain %s: rules: %w", name, err)
	}
	c := Chain{Name: name}
	if hooked {
		c.Hook = "(a base chain)"
	}
	for _, r := range list {
		c.Rules = append(c.Rules, Rule{{l.text(r.Exprs), r.Exprs}})
	}
	l.chains[name] = c
	return c, true, nil
}

func (l *live) text(list []expr.Any) string {
	text, err := canonical(list)
	if known, ok := l.texts[text]; ok && err == nil {
		return known
	}
	return "a rule that is not ours"
}

func (l *live) dynamic(set string) bool { return l.table.isDynamic(set) }

func (l *live) size(set string) int { return l.table.keySize(set) }

// Of linux/netfilter/nf_tables.h.
const (
	elementTable    = 1 // NFTA_SET_ELEM_LIST_TABLE
	elementSet      = 2
	elementElements = 3
	elementKeyAttr  = 1 // NFTA_SET_ELEM_KEY
	elementData     = 2
	dataValue       = 1 // NFTA_DATA_VALUE
	dataVerdict     = 2
)

func (l *live) element(set string, key []byte) (Element, bool, error) {
	id := set + "\x00" + string(key)
	if e, ok := l.found[id]; ok {
		if e == nil {
			return Element{}, false, nil
		}
		return *e, true, nil
	}
	e, err := getElement(l.table.Name, set, key)
	if errors.Is(err, unix.ENOENT) {
		l.found[id] = nil
		return Element{}, false, nil
	}
	if err != nil {
		return Element{}, false, fmt.Errorf("nftables: set %s: %w", set, err)
	}
	l.found[id] = &e
	return e, true, nil
}

// getElement asks for one element, which the library cannot.
func getElement(tab, set string, key []byte) (Element, error) {
	list, err := ask(unix.NFT_MSG_GETSETELEM, func(e *netlink.AttributeEncoder) {
		e.String(elementTable, tab)
		e.String(elementSet, set)
		e.Nested(elementElements, func(e *netlink.AttributeEncoder) error {
			e.Nested(1, func(e *netlink.AttributeEncoder) error {
				e.Nested(elementKeyAttr, func(e *netlink.AttributeEncoder) error { e.Bytes(dataValue, key); return nil })
				return nil
			})
			return nil
		})
	})
	if err != nil {
		return Element{}, err
	}
	out := Element{Set: set, Key: key}
	for _, b := range list {
		d, err := netlink.NewAttributeDecoder(b)
		if err != nil {
			return Element{}, err
		}
		for d.Next() {
			if d.Type() == elementElements {
				d.Nested(func(d *netlink.AttributeDecoder) error { return out.read(d) })
			}
		}
		if err := d.Err(); err != nil {
			return Element{}, err
		}
	}
	return out, nil
}

func (e *Element) read(d *netlink.AttributeDecoder) error {
	var err error
	for d.Next() {
		d.Nested(func(d *netlink.AttributeDecoder) error { // an element
			for d.Next() {
				if d.Type() != elementData {
					continue
				}
				d.Nested(func(d *netlink.AttributeDecoder) error {
					for d.Next() {
						switch d.Type() {
						case dataValue:
							e.Value = d.Bytes()
						case dataVerdict:
							e.Goto, err = gotoOf(d.Bytes())
						}
					}
					return err
				})
			}
			return nil
		})
	}
	return err
}

// hasHook reports whether a chain is a base chain; ENOENT if there is no such chain. The library hides that error.
func hasHook(tab, chain string) (bool, error) {
	list, err := ask(unix.NFT_MSG_GETCHAIN, func(e *netlink.AttributeEncoder) {
		e.String(unix.NFTA_CHAIN_TABLE, tab)
		e.String(unix.NFTA_CHAIN_NAME, chain)
	})
	for _, b := range list {
		attrs, err := netlink.UnmarshalAttributes(b)
		if err != nil {
			return false, err
		}
		for _, a := range attrs {
			if a.Type&^unix.NLA_F_NESTED == unix.NFTA_CHAIN_HOOK {
				return true, nil
			}
		}
	}
	return false, err
}

// ask makes one request about family ip, and returns the attributes of each answer.
func ask(kind int, attributes func(*netlink.AttributeEncoder)) (out [][]byte, err error) {
	c, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	e := netlink.NewAttributeEncoder()
	attributes(e)
	b, err := e.Encode()
	if err != nil {
		return nil, err
	}
	list, err := c.Execute(netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(unix.NFNL_SUBSYS_NFTABLES<<8 | kind), Flags: netlink.Request},
		Data:   append([]byte{unix.NFPROTO_IPV4, unix.NFNETLINK_V0, 0, 0}, b...),
	})
	if err != nil {
		return nil, err
	}
	for _, m := range list {
		if len(m.Data) >= 4 {
			out = append(out, m.Data[4:])
		}
	}
	return out, nil
}
