package nft

import (
	"fmt"
	"strings"

	"github.com/google/nftables"
)

// Verdict is what a rule in another table does with a packet; netfilter's term.
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

// BaseChain is a filtering base chain in another table, with the chains that it jumps to.
type BaseChain struct {
	Family string // ip or inet
	Table  string
	Name   string
	Hook   Hook
	Drops  bool // its policy
	Rules  []OtherRule
}

// OtherRule is the part of a rule that decides what becomes of pods' traffic.
type OtherRule struct {
	Chain   string
	Handle  uint64
	Comment string
	Verdict Verdict
	Links   []Link      // that it matches; none: all links
	Matches []Match     // its other conditions; all have to hold
	Into    []OtherRule // of the chain that it jumps to
}

// Link is a match on the network link by which a packet comes in or leaves.
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

// Iptables reports whether the chain belongs to iptables-nft, whose base chains have names in capitals.
func (c BaseChain) Iptables() bool {
	return c.Family == "ip" && (c.Table == "filter" || c.Table == "mangle" || c.Table == "raw" || c.Table == "security") && c.Name == strings.ToUpper(c.Name)
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

// readRules reads a chain and those that it jumps to, each once. A chain that was deleted meanwhile or cannot be read
// counts as empty: every change sends an event, and then it is read again.
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
		if target != "" {
			o.Into = readRules(c, t, target, known, depth+1)
		}
		out = append(out, o)
	}
	known[chain] = out
	return out
}
