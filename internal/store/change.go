package store

// Change is one key's part in a write: a guard that must hold or nothing is written, and what to do with the key. The
// functions below make the useful ones.
type Change struct {
	Key   string
	Guard Guard
	// Modified is, for Same, the revision at which the key was last changed.
	Modified int64
	Action   Action
	// Value is what a Set sets.
	Value []byte
}

// Guard is a condition on a change's key.
type Guard int

// The guards.
const (
	Any    Guard = iota // nothing
	Absent              // the key does not exist, else ErrExists
	Same                // it exists, else ErrNotFound, and was not changed since Modified, else ErrConflict
)

// Action is what a change does to its key.
type Action int

// The actions.
const (
	Keep Action = iota // nothing: the change is a guard only
	Set
	Remove
)

// Create sets a key that must not exist (ErrExists).
func Create(key string, value []byte) Change {
	return Change{Key: key, Guard: Absent, Action: Set, Value: value}
}

// Update replaces the value of a key that must have been last changed at the revision modified (ErrNotFound,
// ErrConflict).
func Update(key string, value []byte, modified int64) Change {
	return Change{Key: key, Guard: Same, Modified: modified, Action: Set, Value: value}
}

// Delete removes a key that must have been last changed at the revision modified (ErrNotFound, ErrConflict).
func Delete(key string, modified int64) Change {
	return Change{Key: key, Guard: Same, Modified: modified, Action: Remove}
}

// Drop removes a key if it exists, without a guard of its own: the guards on other keys of the same write decide.
func Drop(key string) Change { return Change{Key: key, Action: Remove} }

// Unchanged is only a guard: the key must exist and have been last changed at the revision modified (ErrNotFound,
// ErrConflict).
func Unchanged(key string, modified int64) Change {
	return Change{Key: key, Guard: Same, Modified: modified}
}

// Refused is the error of a write of which a guard did not hold: the first one, in the order given.
type Refused struct {
	Key string
	Err error // ErrExists, ErrNotFound or ErrConflict
}

func (e *Refused) Error() string { return e.Key + ": " + e.Err.Error() }

// Unwrap lets errors.Is find ErrExists, ErrNotFound or ErrConflict.
func (e *Refused) Unwrap() error { return e.Err }

// Check is nil if the guard holds for a key that was last changed at modified, 0 if the key does not exist; else
// ErrExists, ErrNotFound or ErrConflict.
func (c Change) Check(modified int64) error {
	switch {
	case c.Guard == Absent && modified != 0:
		return &Refused{c.Key, ErrExists}
	case c.Guard == Same && modified == 0:
		return &Refused{c.Key, ErrNotFound}
	case c.Guard == Same && modified != c.Modified:
		return &Refused{c.Key, ErrConflict}
	}
	return nil
}
