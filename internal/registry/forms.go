package registry

import "sync"

// Forms are the encodings of the object of one change. All who watch it share them: each is made once, by whoever
// needs it first. Watchers read a change at about the same time, so the forms are kept for the last few changes
// of a kind only, and not those of large objects.
type Forms struct {
	mu   sync.Mutex
	made map[string][]byte
	over bool
}

const (
	keptForms = 64       // changes of a kind whose forms are kept
	maxForm   = 16 << 10 // bytes of a form that is kept
)

// drop forgets the forms of a change that is no longer one of the last.
func (f *Forms) drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.made, f.over = nil, true
}

// Get is the form of that name, which encode makes if nobody has yet. It must not be changed.
func (f *Forms) Get(name string, encode func() ([]byte, error)) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b, ok := f.made[name]; ok {
		return b, nil
	}
	b, err := encode()
	if err != nil {
		return nil, err
	}
	if f.over || len(b) > maxForm {
		return b, nil
	}
	if f.made == nil {
		f.made = map[string][]byte{}
	}
	f.made[name] = b
	return b, nil
}
