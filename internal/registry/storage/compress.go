package storage

import (
	"bytes"

	"github.com/google/btree"
	"github.com/klauspost/compress/s2"

	"minik8s/internal/api"
)

// tree holds the newest objects of a kind by key. It changes by put and drop alone.
type tree struct {
	*btree.BTreeG[*Entry]
	texts *compressor
}

func newTree(kind *api.Kind) *tree {
	return &tree{btree.NewG(32, func(a, b *Entry) bool { return a.key < b.key }), newCompressor(kind)}
}

// put adds an entry that nobody else knows yet, and returns the one whose place it takes; nil if there was none.
func (t *tree) put(e *Entry) *Entry {
	t.texts.add(e, t.BTreeG)
	prev, _ := t.ReplaceOrInsert(e)
	if prev != nil {
		t.texts.remove(prev)
	}
	return prev
}

// drop removes the entry of a key and returns it; nil if there is none.
func (t *tree) drop(key string) *Entry {
	prev, _ := t.Delete(&Entry{key: key})
	if prev != nil {
		t.texts.remove(prev)
	}
	return prev
}

// compressor keeps the JSON of a kind's objects small, once there is much of it: objects of a kind say mostly the same, so each is
// compressed with a dictionary made of a few of them. A Pod of 2 KiB takes 200 bytes then; reading it costs about as much as copying it.
type compressor struct {
	off   bool        // the kind's objects are kept as they are
	dict  *dictionary // what new objects are compressed with; nil: there is too little yet
	enc   *s2.Dict    // the same one with tables to compress, which are larger than itself
	total int         // bytes of JSON of the objects in the tree
	since int         // bytes of JSON that came since dict was made
	live  int         // dictionaries that objects in the tree need

	packed, plain []byte // to work in
}

// dictionary is what texts were compressed with. It does not change.
type dictionary struct {
	dec  *s2.Dict
	uses int // objects in the tree that need it
}

const (
	// compressFrom is how much JSON a kind has at least before any is compressed: less is not worth a dictionary.
	compressFrom = 256 << 10
	// compressMost is the longest JSON of an object that is compressed.
	compressMost = 16 << 10
	// dictionarySize bounds a dictionary.
	dictionarySize = 32 << 10
	// dictionaryShare bounds all dictionaries of a kind, to one part in so many of the JSON of its objects.
	dictionaryShare = 8
)

func newCompressor(kind *api.Kind) *compressor {
	// A dictionary may be kept for longer than the objects of which it is made.
	return &compressor{off: kind.Confidential}
}

// add takes in an entry that nobody else knows yet, and that will be in the tree.
func (c *compressor) add(e *Entry, tree *btree.BTreeG[*Entry]) {
	size := len(e.text)
	c.total += size
	c.since += size
	if c.off || size > compressMost {
		return
	}
	// A dictionary serves until as much was written as there is: then most objects may be others.
	if c.since >= max(compressFrom, c.total) && (c.live+1)*dictionarySize <= c.total/dictionaryShare {
		c.learn(e.kind, tree)
	}
	if c.dict == nil {
		return
	}
	c.packed = c.enc.Encode(c.packed, e.text)
	if len(c.packed) > size*3/4 {
		return
	}
	var err error
	if c.plain, err = c.dict.dec.Decode(c.plain, c.packed); err != nil || !bytes.Equal(c.plain, e.text) {
		return // nothing may be lost, even if the library had a mistake
	}
	if c.dict.uses == 0 {
		c.live++
	}
	c.dict.uses++
	e.text, e.dict = bytes.Clone(c.packed), c.dict
}

// remove lets go of an entry that was in the tree.
func (c *compressor) remove(e *Entry) {
	c.total -= e.Size()
	if e.dict == nil {
		return
	}
	if e.dict.uses--; e.dict.uses == 0 {
		c.live--
	}
	if c.total < compressFrom/2 {
		c.dict, c.enc, c.packed, c.plain, c.since = nil, nil, nil, nil, 0
	}
}

// learn makes a dictionary of objects from all over the tree, so that those of each family are in it.
func (c *compressor) learn(kind *api.Kind, tree *btree.BTreeG[*Entry]) {
	if tree.Len() == 0 {
		return
	}
	step := max(1, c.total/dictionarySize) // so many objects for each that is taken
	text := make([]byte, 0, dictionarySize+16)
	i := 0
	tree.Ascend(func(e *Entry) bool {
		if i++; i%step == 0 && e.Size() <= dictionarySize-len(text) {
			text = e.appendText(text)
		}
		return len(text) < dictionarySize
	})
	head := []byte(jsonHead(kind))
	dec, enc := s2.MakeDict(text, head), s2.MakeDict(text, head)
	if dec == nil {
		return
	}
	c.dict, c.enc, c.since = &dictionary{dec: dec}, enc, 0
}

// appendText appends the object's JSON as it is stored.
func (e *Entry) appendText(dst []byte) []byte {
	if e.dict == nil {
		return append(dst, e.text...)
	}
	n := e.Size()
	dst = append(dst, make([]byte, n)...)
	if got, err := e.dict.dec.Decode(dst[len(dst)-n:], e.text); err != nil || len(got) != n {
		return dst[:len(dst)-n] // its memory is damaged; the object is shown as damaged
	}
	return dst
}

// plain returns the object's JSON as it is stored. It must not be changed.
func (e *Entry) plain() []byte {
	if e.dict == nil {
		return e.text
	}
	return e.appendText(make([]byte, 0, e.Size()))
}

// Size returns the number of bytes of the object's JSON, without its resourceVersion.
func (e *Entry) Size() int {
	if e.dict == nil {
		return len(e.text)
	}
	n, err := s2.DecodedLen(e.text)
	if err != nil {
		return 0
	}
	return n
}
