package nft

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
)

// Fake is a Ruleset in memory.
type Fake struct {
	mu sync.Mutex
	// Tables are our tables, by name.
	Tables map[string]Table
	// Foreign are the base chains of other tables.
	Foreign []BaseChain
	// Refuse is the error that Admit returns, by the table's name.
	Refuse map[string]error
	// Writes counts the calls that changed something.
	Writes int
}

// NewFake makes an empty one.
func NewFake() *Fake { return &Fake{Tables: map[string]Table{}, Refuse: map[string]error{}} }

var _ Ruleset = (*Fake)(nil)

// Apply implements Ruleset.
func (f *Fake) Apply(t Table) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Writes++
	f.Tables[t.Name] = t
	return nil
}

// Change implements Ruleset.
func (f *Fake) Change(table string, add bool, list []Element) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	t, ok := f.Tables[table]
	if !ok {
		return fmt.Errorf("no table %s", table)
	}
	f.Writes++
	t.Sets = slices.Clone(t.Sets)
	for _, e := range list {
		for i := range t.Sets {
			s := &t.Sets[i]
			if s.Name != e.Set {
				continue
			}
			s.Elements = slices.DeleteFunc(slices.Clone(s.Elements), func(x Element) bool { return string(x.Key) == string(e.Key) && x.End == e.End })
			if add {
				s.Elements = append(s.Elements, e)
			}
		}
	}
	f.Tables[table] = t
	return nil
}

// Same implements Ruleset.
func (f *Fake) Same(t Table) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	have, ok := f.Tables[t.Name]
	return ok && have.String() == t.String() && elementsText(have) == elementsText(t), nil
}

func elementsText(t Table) string {
	var out []string
	for _, s := range t.Sets {
		for _, e := range s.Elements {
			out = append(out, fmt.Sprintf("%s %x %x %v", s.Name, e.Key, e.Value, e.End))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// Chains implements Ruleset.
func (f *Fake) Chains(prefix string) (map[string][]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[string][]string{}
	for name, t := range f.Tables {
		if strings.HasPrefix(name, prefix) {
			for _, c := range t.Chains {
				out[name] = append(out[name], c.Name)
			}
		}
	}
	return out, nil
}

// Delete implements Ruleset.
func (f *Fake) Delete(table string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Writes++
	delete(f.Tables, table)
	return nil
}

// Others implements Ruleset.
func (f *Fake) Others(except string) ([]BaseChain, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []BaseChain
	for _, c := range f.Foreign {
		if !strings.HasPrefix(c.Table, except) {
			c.Rules = slices.Clone(c.Rules)
			out = append(out, c)
		}
	}
	return out, nil
}

// Admit implements Ruleset.
func (f *Fake) Admit(b BaseChain, tag string, list []Accept) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.Refuse[b.Table]; err != nil {
		return fmt.Errorf("%s: %w", b, err)
	}
	f.Writes++
	for i := range f.Foreign {
		c := &f.Foreign[i]
		if c.String() != b.String() {
			continue
		}
		var rules []OtherRule
		for _, a := range list {
			rules = append(rules, OtherRule{Chain: c.Name, Comment: comment(tag, a), Verdict: Accepts})
		}
		for _, r := range c.Rules {
			if !strings.HasPrefix(r.Comment, tag) {
				rules = append(rules, r)
			}
		}
		c.Rules = rules
	}
	return nil
}

// Edit implements Ruleset.
func (f *Fake) Edit(name string, e Edit) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	t, ok := f.Tables[name]
	if !ok {
		return fmt.Errorf("no table %s", name)
	}
	next, err := e.applied(t)
	if err != nil || e.Empty() {
		return err
	}
	f.Writes++
	f.Tables[name] = next
	return nil
}

// applied is a table after an edit. As in the kernel, what is removed has to be there, nothing that is removed is in
// use, and nothing that is added is there.
func (e Edit) applied(t Table) (Table, error) {
	sets, chains := map[string]*Set{}, map[string]Chain{}
	for _, s := range append(slices.Clone(e.Sets), t.Sets...) {
		s.Elements = slices.Clone(s.Elements)
		if !slices.ContainsFunc(t.Sets, func(o Set) bool { return o.Name == s.Name }) {
			s.Elements = nil
		}
		sets[s.Name] = &s
	}
	for _, c := range append(slices.Clone(t.Chains), e.Chains...) {
		chains[c.Name] = c
	}
	at := func(el Element) (*Set, int) {
		s := sets[el.Set]
		if s == nil {
			return nil, -1
		}
		return s, slices.IndexFunc(s.Elements, func(o Element) bool { return string(o.Key) == string(el.Key) && o.End == el.End })
	}
	for _, el := range e.Removed {
		s, i := at(el)
		if i < 0 {
			return t, fmt.Errorf("set %s has no element %x", el.Set, el.Key)
		}
		s.Elements = slices.Delete(s.Elements, i, i+1)
	}
	for _, el := range e.Added {
		s, i := at(el)
		if s == nil || el.Goto != "" && chains[el.Goto].Name == "" || i >= 0 && valueOf(s.Elements[i]) != valueOf(el) {
			return t, fmt.Errorf("element %x of %s cannot be added", el.Key, el.Set)
		}
		if i < 0 {
			s.Elements = append(s.Elements, el)
		}
	}
	for _, name := range e.Gone {
		delete(chains, name)
	}
	for _, name := range e.GoneSets {
		delete(sets, name)
	}
	out := Table{Name: t.Name, Guests: t.Guests}
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		for _, el := range sets[name].Elements {
			if el.Goto != "" && chains[el.Goto].Name == "" {
				return t, fmt.Errorf("chain %s is in use by %s", el.Goto, name)
			}
		}
		out.Sets = append(out.Sets, *sets[name])
	}
	for _, name := range slices.Sorted(maps.Keys(chains)) {
		for _, r := range chains[name].Rules {
			if target := r.target(); target != "" && chains[target].Name == "" {
				return t, fmt.Errorf("chain %s leads to %s, which is not there", name, target)
			}
			for _, set := range r.sets() {
				if sets[set] == nil {
					return t, fmt.Errorf("chain %s looks into %s, which is not there", name, set)
				}
			}
		}
		out.Chains = append(out.Chains, chains[name])
	}
	return out, nil
}

// Sync implements Ruleset.
func (f *Fake) Sync(t Table) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	old, there := f.Tables[t.Name]
	old.Name, old.Guests = t.Name, t.Guests
	want, err := stateOf(t)
	if err != nil {
		return false, err
	}
	have, err := stateOf(old)
	if err != nil {
		return false, err
	}
	e, whole := difference(t, want, have)
	if there && e.Empty() && !whole {
		return false, nil
	}
	f.Writes++
	if !whole {
		f.Tables[t.Name], err = e.applied(old)
		return true, err
	}
	for _, s := range old.Sets {
		if t.foreign(s.Name) {
			t.Sets = append(slices.Clone(t.Sets), s)
		}
	}
	for _, c := range old.Chains {
		if t.foreign(c.Name) {
			t.Chains = append(slices.Clone(t.Chains), c)
		}
	}
	f.Tables[t.Name] = t
	return true, nil
}

// Elements implements Ruleset.
func (f *Fake) Elements(t Table, set string) ([]Element, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.Tables[t.Name].Sets {
		if s.Name == set {
			return slices.Clone(s.Elements), nil
		}
	}
	return nil, fmt.Errorf("no set %s in table %s", set, t.Name)
}

// Walker implements Ruleset.
func (f *Fake) Walker(t Table, local func(netip.Addr) bool) *Walker {
	f.mu.Lock()
	defer f.mu.Unlock()
	return NewWalker(f.Tables[t.Name], local)
}
