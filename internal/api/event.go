package api

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
