package function

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// mostQuiet is how many connections to a port may be open on which no request is under way.
const mostQuiet = 4096

// quiet are the connections to a port on which no request is under way. When there are too many, the one goes that has been quiet longest: who opens
// connections and says nothing keeps neither others from the port nor the daemon from its files.
type quiet struct {
	most int

	mu    sync.Mutex
	since map[net.Conn]time.Time
}

// changed is http.Server.ConnState.
func (q *quiet) changed(c net.Conn, state http.ConnState) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if state != http.StateNew && state != http.StateIdle {
		delete(q.since, c)
		return
	}
	q.since[c] = time.Now()
	if len(q.since) <= q.most {
		return
	}
	oldest := c
	for o, at := range q.since {
		if at.Before(q.since[oldest]) {
			oldest = o
		}
	}
	delete(q.since, oldest)
	oldest.Close() //nolint:errcheck // nobody waits for anything on it
}
