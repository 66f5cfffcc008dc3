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
	return t.insert(e)
}

func (t *tree) insert(e *Entry) *Entry {
	prev, _ := t.ReplaceOrInsert(e)
	if prev != nil {
		t.texts.remove(prev)
	}
	return prev
}

// fill is put for a tree that nobody knows yet, before compressAll: a dictionary that is made when all are there serves all of them.
func (t *tree) fill(e *Entry) {
	t.texts.count(e, 1)
	t.insert(e)
}

// compressAll compresses the entries of a tree that nobody knows yet.
func (t *tree) compressAll() {
	if t.texts.worthwhile() {
		t.texts.learn(t.BTreeG)
	}
	t.Ascend(func(e *Entry) bool {
		t.texts.compress(e)
		return true
	})
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
	kind  *api.Kind
	dict  *dictionary // what new objects are compressed with; nil: there is too little yet
	enc   *s2.Dict    // the same one with tables to compress, which are larger than itself
	total int         // bytes of JSON of the objects in the tree that are short enough to be compressed
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
	// dictionaryShare bounds the dictionaries that the objects in a tree need, to one part in so many of their JSON.
	dictionaryShare = 8
)

func newCompressor(kind *api.Kind) *compressor { return &compressor{kind: kind} }

// count adds an entry to the books n times: 1, or -1 for one that has gone.
func (c *compressor) count(e *Entry, n int) {
	if size := e.Size(); size <= compressMost {
		c.total += n * size
		c.since += max(0, n*size)
	}
}

// worthwhile reports whether another dictionary should be made: there is enough, and at least half of it came since the last one.
func (c *compressor) worthwhile() bool {
	// A dictionary may be kept for longer than the objects of which it is made.
	return !c.kind.Confidential && c.since >= max(compressFrom, c.total/2) && (c.live+1)*dictionarySize <= c.total/dictionaryShare
}

// add takes in an entry that nobody else knows yet, and that will be in the tree.
func (c *compressor) add(e *Entry, tree *btree.BTreeG[*Entry]) {
	c.count(e, 1)
	if c.worthwhile() {
		c.learn(tree)
	}
	c.compress(e)
}

// compress compresses an entry that nobody else knows yet, if that makes it smaller.
func (c *compressor) compress(e *Entry) {
	size := len(e.text)
	if c.dict == nil || size > compressMost {
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
	c.count(e, -1)
	if e.dict != nil {
		if e.dict.uses--; e.dict.uses == 0 {
			c.live--
		}
	}
	if c.total < compressFrom/2 {
		c.dict, c.enc, c.packed, c.plain, c.since = nil, nil, nil, nil, 0
	}
}

// learn makes a dictionary of objects from all over the tree, so that those of each family are in it.
func (c *compressor) learn(tree *btree.BTreeG[*Entry]) {
	c.since = 0
	step := max(1, c.total/dictionarySize) // so many objects for each that is taken
	text := make([]byte, 0, dictionarySize+16)
	i := 0
	tree.Ascend(func(e *Entry) bool {
		size := e.Size()
		if size > compressMost {
			return true
		}
		if i++; i%step == 0 && size <= dictionarySize-len(text) {
			text = e.appendText(text)
		}
		return len(text) < dictionarySize
	})
	head := []byte(jsonHead(c.kind))
	if dec, enc := s2.MakeDict(text, head), s2.MakeDict(text, head); dec != nil {
		c.dict, c.enc = &dictionary{dec: dec}, enc
	}
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
