package history

import (
	"encoding/json"
	"sync"
	"time"
)

// Kind is what a request asks for.
type Kind string

// The kinds of requests.
const (
	Create  Kind = "create"
	Update  Kind = "update"  // of the version that it names
	Replace Kind = "replace" // of whatever version there is
	Delete  Kind = "delete"  // of the version that it names, if it names one
	Get     Kind = "get"
	List    Kind = "list"
)

// Outcome is what the client knows about a request afterwards.
type Outcome string

// The outcomes.
const (
	OK      Outcome = "ok"
	Refused Outcome = "refused" // for a reason that Code tells; nothing was changed
	Unknown Outcome = "unknown"
)

// Op is a request and its answer. Times count from the start of the round.
type Op struct {
	Client  int    `json:"client"`
	Master  string `json:"master"`
	Kind    Kind   `json:"kind"`
	Key     string `json:"key,omitempty"`
	Value   string `json:"value,omitempty"`   // that is written; no other request has it
	Version int64  `json:"version,omitempty"` // that Update and Delete are for
	Call    time.Duration
	Return  time.Duration
	Outcome Outcome `json:"outcome"`
	Code    int     `json:"code,omitempty"` // of the HTTP answer, 0 without one
	Why     string  `json:"why,omitempty"`
	Read    Item    `json:"read,omitzero"` // the object in the answer; of a Delete, its UID alone
	// Items is what a List has, and Revision that of the list.
	Items    []Item `json:"items,omitempty"`
	Revision int64  `json:"revision,omitempty"`
}

// writes reports whether the request is to change something.
func (o *Op) writes() bool { return o.Kind != Get && o.Kind != List }

// Item is a version of an object.
type Item struct {
	Key      string `json:"key"`
	Revision int64  `json:"revision,omitempty"`
	Value    string `json:"value,omitempty"`
	UID      string `json:"uid,omitempty"`
}

// The types of a watch's events, as they are sent.
const (
	Added    = "ADDED"
	Modified = "MODIFIED"
	Deleted  = "DELETED"
	Bookmark = "BOOKMARK"
)

// Event is what a watch has shown.
type Event struct {
	Type string        `json:"type"`
	At   time.Duration `json:"at"`
	Item
}

// Watch is one watch: a watcher has one after the other, each from where the last one ended.
type Watch struct {
	Watcher int    `json:"watcher"`
	Master  string `json:"master"`
	After   int64  `json:"after"` // the revision that it was asked to start after
	Call    time.Duration
	Events  []Event `json:"events,omitempty"`
	// Reached is the last revision that it has shown, of whatever object; 0 if none.
	Reached int64  `json:"reached,omitempty"`
	End     string `json:"end,omitempty"` // why it ended
}

// Fault is what was done to the masters.
type Fault struct {
	At   time.Duration `json:"at"`
	What string        `json:"what"`
}

// History is what a round has recorded. It is safe for use from several goroutines until it is checked.
type History struct {
	Seed   uint64
	Round  int
	Start  int64 // a revision at which there was none of the objects
	Ops    []*Op
	Finals []*Op // Lists after all else, one from each master
	// Watches are those that were opened, in any order.
	Watches []*Watch
	Faults  []Fault

	mu    sync.Mutex
	began time.Time
}

func (h *History) now() time.Duration { return time.Since(h.began) }

func (h *History) add(o *Op) {
	h.mu.Lock()
	h.Ops = append(h.Ops, o)
	h.mu.Unlock()
}

func (h *History) addWatch(w *Watch) {
	h.mu.Lock()
	h.Watches = append(h.Watches, w)
	h.mu.Unlock()
}

func (h *History) addFault(what string) {
	h.mu.Lock()
	h.Faults = append(h.Faults, Fault{h.now(), what})
	h.mu.Unlock()
}

func (o *Op) String() string {
	b, err := json.Marshal(o)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
