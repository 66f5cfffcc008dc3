package nft

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/userdata"
)

// comment is the comment of our rule in a chain of another table.
func comment(tag string, a Accept) string { return tag + ": " + a.String() }

// Admitted reports whether the chain has exactly these rules with this tag, all before the rule with that index.
func (c BaseChain) Admitted(tag string, list []Accept, before int) bool {
	var have []string
	for i, r := range c.Rules {
		if strings.HasPrefix(r.Comment, tag) {
			if i > before || r.Verdict != Accepts {
				return false
			}
			have = append(have, r.Comment)
		}
	}
	return slices.EqualFunc(have, list, func(s string, a Accept) bool { return s == comment(tag, a) })
}

// Admit implements Ruleset.
func (k *Kernel) Admit(b BaseChain, tag string, list []Accept) error {
	c, err := nftables.New()
	if err != nil {
		return fmt.Errorf("nftables: %w", err)
	}
	t := &nftables.Table{Family: families[b.Family], Name: b.Table}
	chain := &nftables.Chain{Table: t, Name: b.Name}
	for _, r := range b.Rules {
		if strings.HasPrefix(r.Comment, tag) {
			if err := c.DelRule(&nftables.Rule{Table: t, Chain: chain, Handle: r.Handle}); err != nil {
				return fmt.Errorf("nftables: %s: %w", b, err)
			}
		}
	}
	for _, a := range slices.Backward(list) { // each before those that are there
		c.InsertRule(b.rule(t, chain, a, comment(tag, a)))
	}
	if err := c.Flush(); err != nil {
		return fmt.Errorf("nftables: %s: %w", b, err)
	}
	return nil
}

func (b BaseChain) rule(t *nftables.Table, chain *nftables.Chain, a Accept, comment string) *nftables.Rule {
	r := &nftables.Rule{Table: t, Chain: chain}
	if b.Iptables() {
		r.Exprs = a.iptables(comment)
		return r
	}
	r.Exprs = a.exprs(t.Family)
	r.UserData = userdata.AppendString(nil, userdata.TypeComment, comment)
	return r
}
