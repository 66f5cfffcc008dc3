package nft

import (
	"bytes"
	"slices"
)

// rules are what a Walker walks through.
type rules interface {
	// base returns the chains of a hook.
	base(h Hook) ([]Chain, error)
	// chain returns a chain; false if there is none.
	chain(name string) (Chain, bool, error)
	// dynamic reports whether a set has the clients that are remembered.
	dynamic(set string) bool
	// size is the length of a set's keys; 0 if there is no such set.
	size(set string) int
	// element returns that of a set with the key; false if there is none.
	element(set string, key []byte) (Element, bool, error)
}

// data is a table as data.
type data struct {
	table  Table
	chains map[string]Chain
	sets   map[string]map[string]Element
}

func newData(t Table) *data {
	d := &data{table: t, chains: map[string]Chain{}, sets: map[string]map[string]Element{}}
	for _, c := range t.Chains {
		d.chains[c.Name] = c
	}
	for _, s := range t.Sets {
		d.sets[s.Name] = map[string]Element{}
		for _, e := range s.Elements {
			d.sets[s.Name][string(e.Key)] = e
		}
	}
	return d
}

func (d *data) base(h Hook) (out []Chain, _ error) {
	for _, c := range d.table.Chains {
		if c.Hook == h {
			out = append(out, c)
		}
	}
	return out, nil
}

func (d *data) chain(name string) (Chain, bool, error) {
	c, ok := d.chains[name]
	return c, ok, nil
}

func (d *data) size(set string) int { return d.table.keySize(set) }

func (d *data) dynamic(set string) bool { return d.table.isDynamic(set) }

func (t Table) isDynamic(set string) bool {
	return slices.ContainsFunc(t.Sets, func(s Set) bool { return s.Name == set && s.Dynamic })
}

func (t Table) keySize(set string) int {
	for _, s := range t.Sets {
		if s.Name == set {
			if len(s.Key) == 1 && s.Key[0] == Port {
				return 2
			}
			return 4 * len(s.Key)
		}
	}
	return 0
}

func (d *data) element(set string, key []byte) (Element, bool, error) {
	if slices.ContainsFunc(d.table.Sets, func(s Set) bool { return s.Name == set && s.Ranges }) {
		e, ok := inRanges(d.sets[set], key)
		return e, ok, nil
	}
	e, ok := d.sets[set][string(key)]
	return e, ok, nil
}

// inRanges returns the start of the range that has a key: the last end of a range at or before it, if that is a start.
func inRanges(set map[string]Element, key []byte) (last Element, found bool) {
	for _, e := range set {
		if bytes.Compare(e.Key, key) <= 0 && (last.Key == nil || bytes.Compare(e.Key, last.Key) > 0) {
			last = e
		}
	}
	return last, last.Key != nil && !last.End
}
