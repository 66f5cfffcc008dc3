package nft

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// perMessage is how many elements go into one netlink message. The length of an attribute has 16 bits, and the
// library does not check for overflow.
const perMessage = 100

// Kernel is the Ruleset of the network namespace of the calling thread.
type Kernel struct {
	mu sync.Mutex
	// installed has each of our tables as the kernel listed it right after Apply.
	installed map[string]string
	sockets   sockets // by which Edit and Sync write
}

// NewKernel makes one; it changes nothing.
func NewKernel() *Kernel { return &Kernel{installed: map[string]string{}} }

var _ Ruleset = (*Kernel)(nil)

func table(name string) *nftables.Table {
	return &nftables.Table{Family: nftables.TableFamilyIPv4, Name: name}
}

// setIDs numbers sets, which have to be told apart within a transaction. The library would count them, too, but without a lock, and
// the proxy and the policies write at the same time: two sets of one transaction could get the same number.
var setIDs atomic.Uint32

func (s Set) kernel(t *nftables.Table) (*nftables.Set, error) {
	key, err := concat(s.Key)
	if err != nil {
		return nil, err
	}
	out := &nftables.Set{Table: t, ID: setIDs.Add(1), Name: s.Name, Concatenation: len(s.Key) > 1, KeyType: key, Interval: s.Ranges,
		Dynamic: s.Dynamic, HasTimeout: s.Dynamic, Size: uint32(s.Size)}
	if len(s.Value) > 0 {
		out.IsMap = true
		if out.DataType, err = concat(s.Value); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func concat(list []Type) (nftables.SetDatatype, error) {
	data := make([]nftables.SetDatatype, len(list))
	for i, t := range list {
		data[i] = types[t].data
	}
	if len(data) == 1 {
		return data[0], nil
	}
	return nftables.ConcatSetType(data...)
}

// Apply implements Ruleset.
func (k *Kernel) Apply(t Table) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	c, err := nftables.New()
	if err != nil {
		return fmt.Errorf("nftables: %w", err)
	}
	tab := table(t.Name)
	c.AddTable(tab) // so that deleting it cannot fail
	c.DelTable(tab)
	c.AddTable(tab)
	if err := t.queue(c, tab); err != nil {
		return err
	}
	if err := c.Flush(); err != nil {
		return fmt.Errorf("nftables: table %s: %w", t.Name, err)
	}
	now, rules, err := dump(c, tab)
	if err != nil {
		return err
	}
	want := 0
	for _, ch := range t.Chains {
		want += len(ch.Rules)
	}
	if rules != want {
		// Another program has changed it already. Nothing is remembered, so that the next comparison fails.
		now = ""
	}
	k.installed[t.Name] = now
	return nil
}

// queue adds the sets and chains to a transaction.
func (t Table) queue(c *nftables.Conn, tab *nftables.Table) error {
	for _, s := range t.Sets {
		set, err := s.kernel(tab)
		if err == nil {
			err = c.AddSet(set, nil)
		}
		for part := range slices.Chunk(s.Elements, perMessage) {
			if err == nil {
				err = c.SetAddElements(set, kernelElements(part))
			}
		}
		if err != nil {
			return fmt.Errorf("nftables: set %s: %w", s.Name, err)
		}
	}
	for _, ch := range t.Chains {
		chain := c.AddChain(ch.kernel(tab))
		for _, r := range ch.Rules {
			c.AddRule(&nftables.Rule{Table: tab, Chain: chain, Exprs: r.exprs()})
		}
	}
	return nil
}

func (c Chain) kernel(t *nftables.Table) *nftables.Chain {
	out := &nftables.Chain{Table: t, Name: c.Name}
	if c.Hook == "" {
		return out
	}
	out.Type = nftables.ChainTypeFilter
	if c.NAT {
		out.Type = nftables.ChainTypeNAT
	}
	out.Hooknum, out.Priority = nftables.ChainHookRef(hookNumbers[c.Hook]), nftables.ChainPriorityRef(nftables.ChainPriority(c.Priority))
	return out
}

var hookNumbers = map[Hook]nftables.ChainHook{
	Prerouting: *nftables.ChainHookPrerouting, Input: *nftables.ChainHookInput, Forward: *nftables.ChainHookForward,
	Output: *nftables.ChainHookOutput, Postrouting: *nftables.ChainHookPostrouting,
}

func kernelElements(list []Element) []nftables.SetElement {
	out := make([]nftables.SetElement, len(list))
	for i, e := range list {
		out[i] = nftables.SetElement{Key: e.Key, Val: e.Value, IntervalEnd: e.End}
		if e.Goto != "" {
			out[i].VerdictData = &expr.Verdict{Kind: expr.VerdictGoto, Chain: e.Goto}
		}
	}
	return out
}

// dump is a table's chains and rules as text that can be compared, and the number of rules.
func dump(c *nftables.Conn, t *nftables.Table) (text string, rules int, err error) {
	chains, err := c.ListChainsOfTableFamily(t.Family)
	if err != nil {
		return "", 0, fmt.Errorf("nftables: chains: %w", err)
	}
	var out []byte
	for _, ch := range chains {
		if ch.Table.Name != t.Name {
			continue
		}
		out = fmt.Appendf(out, "chain %s %s", ch.Name, ch.Type)
		if ch.Hooknum != nil && ch.Priority != nil && ch.Policy != nil {
			out = fmt.Appendf(out, " %d %d %d", *ch.Hooknum, *ch.Priority, *ch.Policy)
		}
		list, err := c.GetRules(t, ch)
		if errors.Is(err, unix.ENOENT) {
			continue // it was removed meanwhile
		}
		if err != nil {
			return "", 0, fmt.Errorf("nftables: rules: %w", err)
		}
		for _, r := range list {
			rules++
			out = append(out, "\nrule "...)
			for _, e := range r.Exprs {
				b, err := expr.Marshal(byte(t.Family), e)
				if err != nil {
					return "", 0, fmt.Errorf("nftables: rules: %w", err)
				}
				out = append(out, b...)
			}
		}
		out = append(out, '\n')
	}
	return string(out), rules, nil
}

// Same implements Ruleset.
func (k *Kernel) Same(t Table) (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c, err := nftables.New()
	if err != nil {
		return false, fmt.Errorf("nftables: %w", err)
	}
	tab := table(t.Name)
	now, _, err := dump(c, tab)
	if err != nil || now == "" || now != k.installed[t.Name] {
		return false, err
	}
	for _, s := range t.Sets {
		set, err := s.kernel(tab)
		if err != nil {
			return false, fmt.Errorf("nftables: set %s: %w", s.Name, err)
		}
		have, err := c.GetSetElements(set)
		if err != nil || len(have) != len(s.Elements) {
			// A set that was removed meanwhile gives one of several errors; the table is not the same then.
			return false, nil
		}
		type key struct {
			key string
			end bool
		}
		wanted := map[key]string{}
		for _, e := range s.Elements {
			wanted[key{string(e.Key), e.End}] = string(e.Value)
		}
		for _, e := range have {
			if val, ok := wanted[key{string(e.Key), e.IntervalEnd}]; !ok || val != string(e.Val) {
				return false, nil
			}
		}
	}
	return true, nil
}

// Change implements Ruleset.
func (k *Kernel) Change(name string, add bool, list []Element) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	c, err := nftables.New()
	if err != nil {
		return fmt.Errorf("nftables: %w", err)
	}
	for _, e := range list {
		set := &nftables.Set{Table: table(name), Name: e.Set, IsMap: len(e.Value) > 0}
		if add {
			err = c.SetAddElements(set, kernelElements([]Element{e}))
		} else {
			err = c.SetDeleteElements(set, kernelElements([]Element{e}))
		}
		if err != nil {
			return fmt.Errorf("nftables: set %s: %w", e.Set, err)
		}
	}
	err = c.Flush()
	if !add && errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("nftables: table %s: %w", name, err)
	}
	return nil
}

// Chains implements Ruleset.
func (k *Kernel) Chains(prefix string) (map[string][]string, error) {
	c, err := nftables.New()
	if err != nil {
		return nil, fmt.Errorf("nftables: %w", err)
	}
	chains, err := c.ListChainsOfTableFamily(nftables.TableFamilyIPv4)
	if err != nil {
		return nil, fmt.Errorf("nftables: chains: %w", err)
	}
	out := map[string][]string{}
	for _, ch := range chains {
		if strings.HasPrefix(ch.Table.Name, prefix) {
			out[ch.Table.Name] = append(out[ch.Table.Name], ch.Name)
		}
	}
	return out, nil
}

// Delete implements Ruleset.
func (k *Kernel) Delete(name string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.installed, name)
	c, err := nftables.New()
	if err != nil {
		return fmt.Errorf("nftables: %w", err)
	}
	c.AddTable(table(name))
	c.DelTable(table(name))
	if err := c.Flush(); err != nil {
		return fmt.Errorf("nftables: table %s: %w", name, err)
	}
	return nil
}
