package store

import (
	"context"
	"errors"
)

// The errors of this package's calls, for errors.Is. Any other error is a failure of the store itself.
var (
	ErrNotFound  = errors.New("not found")
	ErrExists    = errors.New("already exists")
	ErrConflict  = errors.New("changed since it was read")
	ErrCompacted = errors.New("the history at this revision is gone")
	// ErrNoSpace means that the store is at its quota or the disk is full: only deletions and essential writes
	// succeed until space is freed.
	ErrNoSpace  = errors.New("the store is full")
	ErrTooLarge = errors.New("the value is too large")
	// ErrUnavailable means that the store cannot answer now, because a majority of its members is away. Nothing was
	// written.
	ErrUnavailable = errors.New("the store has no majority of its members, or cannot be reached")
	// ErrUnknown means that a write may have been carried out, or may still be: the member that had it, or the way there, is
	// lost.
	ErrUnknown = errors.New("it is not known whether the write was carried out")
)

type essentialKey struct{}

// Essential marks writes that are accepted even if the store is nearly full: those that lead to deletions, and the
// small ones, such as heartbeats, without which nodes would be regarded as dead. Deletions are always accepted.
func Essential(ctx context.Context) context.Context {
	return context.WithValue(ctx, essentialKey{}, true)
}

// IsEssential reports whether a write was marked.
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

// EventType distinguishes a write from a deletion.
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
	// Prev is the key before the change; nil if it did not exist. Only History sets it.
	Prev *KV
}

// Batch is what a watch delivers: all changes up to Revision that were not delivered before, in order. There may be none:
// then it only tells how far the watch is.
type Batch struct {
	Events   []Event
	Revision int64
}

// Store keeps the bytes.
type Store interface {
	Get(ctx context.Context, key string) (KV, error)
	// List returns keys with the prefix that are greater than after, in order; limit 0 means all, revision 0 means
	// now. The error is ErrCompacted if the revision is no longer kept.
	List(ctx context.Context, prefix, after string, limit, revision int64) (Page, error)
	// Write makes all changes at one revision, or none: if a guard does not hold, the error is a *Refused; without
	// space, ErrNoSpace. No key may be set or removed twice; a guard alone may be on a key that is.
	Write(ctx context.Context, changes ...Change) (revision int64, err error)
	// Revision is not smaller than that of any write acknowledged before the call. A watch of everything reaches it, also if
	// nothing is written.
	Revision(ctx context.Context) (int64, error)
	// Watch delivers all changes of keys with the prefix at revisions greater than after; an empty prefix means every
	// key. The changes of one write come in one batch.
	Watch(ctx context.Context, prefix string, after int64) (Watch, error)
	// History is a Watch of past changes. It ends, without an error, once it has delivered every change up to a
	// revision that is not smaller than that of any write acknowledged before the call; the last batch has that
	// revision. ErrCompacted if the changes right after the given revision are no longer kept.
	History(ctx context.Context, prefix string, after int64) (Watch, error)
	// Compacted is the oldest revision that can still be read; 0 or less if all can.
	Compacted() int64
	// Compact drops the history before revision.
	Compact(ctx context.Context, revision int64) error
	// Size is the number of bytes on disk, and how many of them are in use.
	Size() (total, used int64)
	Close() error
}

// Watch is an open watch; Batches closes when it ends, and Err says why.
type Watch interface {
	Batches() <-chan Batch
	Err() error
	Stop()
}
