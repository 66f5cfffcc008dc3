package registry

import "sync"

// Forms are the encodings of the object of one change. All who watch it share them: each is made once, by whoever
// needs it first, and goes with the change.
type Forms struct {
	mu   sync.Mutex
	made map[string][]byte
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
	if f.made == nil {
		f.made = map[string][]byte{}
	}
	f.made[name] = b
	return b, nil
}
