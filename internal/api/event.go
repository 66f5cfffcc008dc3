package api

import "strconv"

// EventType is what happened to an object, as a watch tells it.
type EventType string

// The types of events, spelled as on the wire.
const (
	Added    EventType = "ADDED"
	Modified EventType = "MODIFIED"
	Deleted  EventType = "DELETED"
	// Bookmark carries no object: all changes up to its revision have been sent.
	Bookmark EventType = "BOOKMARK"
)

// Revision is a resourceVersion as a number: that of the store after the write. It is 0 where there is
// none. Revisions of all kinds count together, so they say which of two writes came first.
func Revision(resourceVersion string) uint64 {
	rev, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return rev
}
