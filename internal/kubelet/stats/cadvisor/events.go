package cadvisor

import (
	"encoding/json"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"time"

	v1 "github.com/google/cadvisor/info/v1"

	"minik8s/internal/kubelet/stats/events"
	"minik8s/internal/streaming"
)

// eventTypes are the names of events in a question.
var eventTypes = map[string]v1.EventType{
	"oom_events":      v1.EventOom,
	"oom_kill_events": v1.EventOomKill,
	"creation_events": v1.EventContainerCreation,
	"deletion_events": v1.EventContainerDeletion,
}

// maxEvents is how many of what is past are sent if the question does not say; it is cAdvisor's.
const maxEvents = 10

// eventsAsked is what a question wants, and whether it wants to be told as it happens. As in cAdvisor, what cannot be read is as
// if it were not there, and a question that names no kind of event wants none.
func eventsAsked(name string, query url.Values) (q events.Query, stream bool) {
	is := func(key string) bool {
		yes, err := strconv.ParseBool(query.Get(key))
		return err == nil && yes
	}
	q = events.Query{Container: path.Clean(name), Below: is("subcontainers"), Types: map[v1.EventType]bool{}, Max: maxEvents}
	for key, kind := range eventTypes {
		q.Types[kind] = is(key) || is("all_events")
	}
	if n, err := strconv.Atoi(query.Get("max_events")); err == nil {
		q.Max = n
	}
	for key, to := range map[string]*time.Time{"start_time": &q.Start, "end_time": &q.End} {
		if at, err := time.Parse(time.RFC3339, query.Get(key)); err == nil {
			*to = at
		}
	}
	return q, is("stream")
}

// events answers with what has happened, or sends what happens. A stream ends well whatever the reason: cAdvisor's client ends its
// program when one breaks.
func (h *Handler) events(w http.ResponseWriter, req *http.Request, name string) {
	q, stream := eventsAsked(name, req.URL.Query())
	w.Header().Set("Content-Type", "application/json")
	out := streaming.NewWriter(w, h.WriteTimeout)
	enc := json.NewEncoder(out)
	if !stream {
		enc.Encode(h.Events.Past(q)) //nolint:errcheck // the client has disconnected
		return
	}
	ready := func() error {
		w.WriteHeader(http.StatusOK)
		_, err := out.Write(nil)
		return err
	}
	h.Events.Follow(req.Context(), q, ready, func(e *v1.Event) error { return enc.Encode(e) }) //nolint:errcheck // the client has disconnected
}
