package policy

import (
	"maps"
	"slices"

	"minik8s/internal/nft"
)

// ledger is what our part of the table should have, and how that differs from what it had at the last edit.
type ledger struct {
	sets   map[string]nft.Set // without their elements
	chains map[string]nft.Chain
	// elements are those of each set, by key.
	elements map[string]map[elementKey]nft.Element

	// What those that have changed since the last edit were before it; nil: they were not there.
	oldSets     map[string]*nft.Set
	oldChains   map[string]*nft.Chain
	oldElements map[string]map[elementKey]*nft.Element
}

type elementKey struct {
	key string
	end bool
}

func newLedger() *ledger {
	l := &ledger{sets: map[string]nft.Set{}, chains: map[string]nft.Chain{}, elements: map[string]map[elementKey]nft.Element{}}
	l.clean()
	return l
}

func (l *ledger) clean() {
	l.oldSets, l.oldChains, l.oldElements = map[string]*nft.Set{}, map[string]*nft.Chain{}, map[string]map[elementKey]*nft.Element{}
}

// putSet adds an empty set, and takeSet removes one with all its elements.
func (l *ledger) putSet(s nft.Set) {
	if _, ok := l.oldSets[s.Name]; !ok {
		l.oldSets[s.Name] = nil
	}
	l.sets[s.Name], l.elements[s.Name] = s, map[elementKey]nft.Element{}
}

func (l *ledger) takeSet(name string) {
	for k := range l.elements[name] {
		l.note(name, k)
	}
	if _, ok := l.oldSets[name]; !ok {
		old := l.sets[name]
		l.oldSets[name] = &old
	}
	delete(l.sets, name)
	delete(l.elements, name)
}

func (l *ledger) putChain(c nft.Chain) {
	l.noteChain(c.Name)
	l.chains[c.Name] = c
}

func (l *ledger) takeChain(name string) {
	l.noteChain(name)
	delete(l.chains, name)
}

func (l *ledger) noteChain(name string) {
	if _, ok := l.oldChains[name]; ok {
		return
	}
	l.oldChains[name] = nil
	if c, ok := l.chains[name]; ok {
		l.oldChains[name] = &c
	}
}

// put adds an element or replaces the one with its key; take removes one, if it is there.
func (l *ledger) put(e nft.Element) {
	k := elementKey{string(e.Key), e.End}
	if was, ok := l.elements[e.Set][k]; ok && same(was, e) {
		return
	}
	l.note(e.Set, k)
	l.elements[e.Set][k] = e
}

func (l *ledger) take(set string, key []byte) {
	k := elementKey{key: string(key)}
	if _, ok := l.elements[set][k]; ok {
		l.note(set, k)
		delete(l.elements[set], k)
	}
}

func (l *ledger) note(set string, k elementKey) {
	of := l.oldElements[set]
	if of == nil {
		of = map[elementKey]*nft.Element{}
		l.oldElements[set] = of
	}
	if _, ok := of[k]; ok {
		return
	}
	of[k] = nil
	if e, ok := l.elements[set][k]; ok {
		of[k] = &e
	}
}

func same(a, b nft.Element) bool { return a.Goto == b.Goto && string(a.Value) == string(b.Value) }

// edit is the difference since the last edit.
func (l *ledger) edit() (out nft.Edit) {
	for _, name := range slices.Sorted(maps.Keys(l.oldSets)) {
		s, is := l.sets[name]
		switch was := l.oldSets[name] != nil; {
		case is && !was:
			out.Sets = append(out.Sets, s)
		case was && !is:
			out.GoneSets = append(out.GoneSets, name)
		}
	}
	for set, keys := range l.oldElements {
		if _, is := l.sets[set]; !is {
			continue // they go with it
		}
		for k, was := range keys {
			now, is := l.elements[set][k]
			if is && was != nil && same(*was, now) {
				continue
			}
			if was != nil {
				out.Removed = append(out.Removed, *was)
			}
			if is {
				out.Added = append(out.Added, now)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.oldChains)) {
		was := l.oldChains[name]
		now, is := l.chains[name]
		switch {
		case is && (was == nil || text(*was) != text(now)):
			out.Chains = append(out.Chains, now)
		case !is && was != nil:
			out.Gone = append(out.Gone, name)
		}
	}
	l.clean()
	return out
}

// text is a chain as the nft tool writes it: two with the same text are the same.
func text(c nft.Chain) string { return nft.Table{Chains: []nft.Chain{c}}.String() }

// fill adds all of it to a table.
func (l *ledger) fill(t *nft.Table) {
	for _, name := range slices.Sorted(maps.Keys(l.sets)) {
		s := l.sets[name]
		for _, e := range l.elements[name] {
			s.Elements = append(s.Elements, e)
		}
		t.Sets = append(t.Sets, s)
	}
	for _, name := range slices.Sorted(maps.Keys(l.chains)) {
		t.Chains = append(t.Chains, l.chains[name])
	}
}
