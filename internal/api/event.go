package api

import "strconv"

// EventType is what happened to an object, as a watch reports it.
type EventType string

// The types of events, as spelled on the wire.
const (
	Added    EventType = "ADDED"
	Modified EventType = "MODIFIED"
	Deleted  EventType = "DELETED"
	// Bookmark carries no object. It means that all changes up to its revision have been sent.
	Bookmark EventType = "BOOKMARK"
)

// Revision returns a resourceVersion as a number: the revision of the store after the write, or 0 if there is none.
// Revisions are counted across all kinds, so they tell which of two writes came first.
func Revision(resourceVersion string) uint64 {
	rev, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return rev
}
