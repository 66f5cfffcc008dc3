package storage

import "sync"

// Encodings are the object of one change as bytes. All who watch it share them: each is made once, by whoever
// needs it first. Watchers read a change at about the same time, so they are kept for the last few changes
// of a kind only, and not those of large objects.
type Encodings struct {
	mu   sync.Mutex
	made map[string][]byte
	over bool
}

const (
	keptEncodings = 64       // changes of a kind whose encodings are kept
	maxEncoding   = 16 << 10 // bytes of one that is kept
)

// drop forgets the encodings of a change that is no longer one of the last.
func (f *Encodings) drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.made, f.over = nil, true
}

// Get is the encoding of that name, which encode makes if nobody has yet. It must not be changed.
func (f *Encodings) Get(name string, encode func() ([]byte, error)) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b, ok := f.made[name]; ok {
		return b, nil
	}
	b, err := encode()
	if err != nil {
		return nil, err
	}
	if f.over || len(b) > maxEncoding {
		return b, nil
	}
	if f.made == nil {
		f.made = map[string][]byte{}
	}
	f.made[name] = b
	return b, nil
}
