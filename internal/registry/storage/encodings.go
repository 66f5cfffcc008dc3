package storage

import "sync"

// Encodings hold the object of one change as bytes, shared by all its watchers: the first watcher that needs an
// encoding makes it. Watchers read a change at about the same time, so encodings are kept only for the last few
// changes of a kind, and not for large objects.
type Encodings struct {
	mu   sync.Mutex
	made map[string][]byte
	over bool
}

const (
	keptEncodings = 64       // changes of a kind whose encodings are kept
	maxEncoding   = 16 << 10 // bytes of an encoding that is kept
)

// drop removes the encodings of a change that is no longer among the last.
func (f *Encodings) drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.made, f.over = nil, true
}

// Get returns the encoding of that name, made by encode if it does not exist yet. It must not be changed.
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
