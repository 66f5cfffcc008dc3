package store

// Change is one key's part in a write: what must be true of the key for anything to be written, and what
// becomes of it. The functions below make the sensible ones.
type Change struct {
	Key   string
	Guard Guard
	// Modified is, for Same, the revision at which the key was last changed.
	Modified int64
	Action   Action
	// Value is what a Set sets.
	Value []byte
}

// Guard is what a change asks of its key.
type Guard int

// The guards.
const (
	Any    Guard = iota // nothing
	Absent              // the key is not there: ErrExists
	Same                // it is there (ErrNotFound) and as it was read (ErrConflict)
)

// Action is what a change does to its key.
type Action int

// The actions.
const (
	Keep Action = iota // nothing: the change is a guard only
	Set
	Remove
)

// Create sets a key that must not be there.
func Create(key string, value []byte) Change {
	return Change{Key: key, Guard: Absent, Action: Set, Value: value}
}

// Update replaces the value of a key that was last changed at a revision.
func Update(key string, value []byte, modified int64) Change {
	return Change{Key: key, Guard: Same, Modified: modified, Action: Set, Value: value}
}

// Delete removes a key that was last changed at a revision.
func Delete(key string, modified int64) Change {
	return Change{Key: key, Guard: Same, Modified: modified, Action: Remove}
}

// Drop removes a key, if it is there; the guards of other keys say that it may go.
func Drop(key string) Change { return Change{Key: key, Action: Remove} }

// Unchanged asks that a key is there and was last changed at a revision.
func Unchanged(key string, modified int64) Change {
	return Change{Key: key, Guard: Same, Modified: modified}
}

// Refused is the failure of a write by a guard: of the first one, in the order given, that did not hold.
type Refused struct {
	Key string
	Err error // ErrExists, ErrNotFound or ErrConflict
}

func (e *Refused) Error() string { return e.Key + ": " + e.Err.Error() }

// Unwrap has errors.Is see what kind of failure it is.
func (e *Refused) Unwrap() error { return e.Err }

// Check says how the guard fails on a key; nil if it holds. modified is 0 if the key is not there.
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
