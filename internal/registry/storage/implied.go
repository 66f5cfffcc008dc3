package storage

import "bytes"

// impliedBy returns what an object of another kind implies; nil: nothing.
func (kc *Objects) impliedBy(by *Entry) *Entry {
	obj := kc.kind.Implied.Of(by.Object())
	if obj == nil {
		return nil
	}
	raw, err := Encode(kc.kind, obj)
	if err != nil {
		return nil // it is made of a few strings
	}
	return &Entry{kind: kc.kind, key: KeyOf(kc.kind, obj.GetNamespace(), obj.GetName()), rev: by.rev, text: raw, implied: true}
}

// implied follows a change of an object of another kind: what prev implied goes, what next implies comes. What both imply
// alike stays as it is.
func (kc *Objects) implied(prev, next *Entry, rev int64) {
	var was, is *Entry
	if prev != nil {
		was = kc.impliedBy(prev)
	}
	if next != nil {
		is = kc.impliedBy(next)
	}
	if was != nil && is != nil && was.key == is.key && sameText(was, is) || was == nil && is == nil {
		return
	}
	kc.mu.Lock()
	defer kc.mu.Unlock()
	if was != nil && (is == nil || is.key != was.key) {
		// What took its place meanwhile is another's.
		if have, ok := kc.tree.Get(was); ok && sameText(have, was) {
			kc.tree.drop(have.key)
			kc.record(change{prev: have, rev: rev})
		}
	}
	if is != nil {
		replaced := kc.tree.put(is)
		kc.record(change{prev: replaced, next: is, rev: rev})
	}
}

func sameText(a, b *Entry) bool { return bytes.Equal(a.plain(), b.plain()) }

// complete reports whether the store has all objects of the kind. Else its history is not that of the kind.
func (kc *Objects) complete() bool { return kc.kind.Implied == nil }
