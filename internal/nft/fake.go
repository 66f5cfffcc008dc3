package nft

import (
	"fmt"
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
