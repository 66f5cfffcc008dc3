package store

import (
	"context"
	"errors"
)

// What a call can fail with; errors.Is tells. Anything else is the machinery's own trouble.
var (
	ErrNotFound  = errors.New("not found")
	ErrExists    = errors.New("already exists")
	ErrConflict  = errors.New("changed since it was read")
	ErrCompacted = errors.New("the history at this revision is gone")
	// ErrNoSpace is a store at its quota or a full disk: nothing can be written until something is
	// deleted and the space is won back.
	ErrNoSpace  = errors.New("the store is full")
	ErrTooLarge = errors.New("the value is too large")
)

type essentialKey struct{}

// Essential marks writes that go on when the store is nearly full: those that lead to something being
// deleted, and the small ones without which the cluster would take itself for dead. Deletions are always.
func Essential(ctx context.Context) context.Context {
	return context.WithValue(ctx, essentialKey{}, true)
}

// IsEssential says whether a write was marked.
func IsEssential(ctx context.Context) bool { return ctx.Value(essentialKey{}) != nil }

// KV is a key, its value and the revisions at which it was created and last changed.
type KV struct {
	Key      string
	Value    []byte
	Created  int64
	Modified int64
}

// Page is a part of a listing, all of it at Revision.
type Page struct {
	KVs      []KV
	Revision int64
	// More says that keys follow after the last one of this page.
	More bool
	// Count is how many keys there are from the start of the page on.
	Count int64
}

// EventType tells a write from a deletion.
type EventType int

// The types of events.
const (
	Put EventType = iota
	Deletion
)

// Event is one change. For a Deletion, KV has the key and the revision of the deletion in Modified.
type Event struct {
	Type EventType
	KV   KV
	// Prev is what was there before; only History says so, and nil is nothing.
	Prev *KV
}

// Batch is what a watch delivers: changes in order, none left out up to Revision.
type Batch struct {
	Events   []Event
	Revision int64
}

// Store keeps the bytes.
type Store interface {
	Get(ctx context.Context, key string) (KV, error)
	// List returns keys with the prefix that are greater than after, in order; limit 0 is all,
	// revision 0 is now.
	List(ctx context.Context, prefix, after string, limit, revision int64) (Page, error)
	// Write makes all changes at one revision, or, if a guard does not hold, none; then the error is a *Refused.
	// No key may be in it twice.
	Write(ctx context.Context, changes ...Change) (revision int64, err error)
	// Revision is not smaller than that of any write acknowledged before the call.
	Revision(ctx context.Context) (int64, error)
	// Watch delivers all changes below prefix with a revision greater than after; an empty prefix is every key.
	// What was changed by one write comes in one batch.
	Watch(ctx context.Context, prefix string, after int64) (Watch, error)
	// History is a Watch of what has already happened: it ends, without an error, once it has delivered every
	// change up to a revision not smaller than that of any write acknowledged before the call, which the last
	// batch carries. ErrCompacted when the changes right after that revision are not kept any more.
	History(ctx context.Context, prefix string, after int64) (Watch, error)
	// Compacted is the oldest revision that can still be read; not positive if all can.
	Compacted() int64
	// Compact drops the history before revision.
	Compact(ctx context.Context, revision int64) error
	// Size is the bytes on disk, and of those the bytes in use.
	Size() (total, used int64)
	Close() error
}

// Watch is an open watch; Batches closes when it ends, and Err says why.
type Watch interface {
	Batches() <-chan Batch
	Err() error
	Stop()
}
