package history

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	shortestWatch = 200 * time.Millisecond
	longestWatch  = 6 * time.Second
)

// watcher follows the objects by watches, each from where the last one ended. One with several masters goes to another
// one for each.
type watcher struct {
	id    int
	calls []*caller
	h     *History
	dice  *rand.Rand
	// lists has each watch begin with all objects that there are: what comes before the bookmark that ends them is a list.
	lists bool
	// reached is how far it has come; for others to read.
	reached atomic.Int64
}

func (w *watcher) run(ctx context.Context) {
	for i := 0; ctx.Err() == nil; i++ {
		rec := w.watch(ctx, w.calls[i%len(w.calls)], w.reached.Load())
		if rec.Reached > w.reached.Load() {
			w.reached.Store(rec.Reached)
		}
		if len(rec.Events) == 0 && rec.End != endedByUs {
			sleep(ctx, backOff)
		}
	}
}

const endedByUs = "by the watcher"

// watch follows one watch to its end.
func (w *watcher) watch(ctx context.Context, c *caller, after int64) *Watch {
	rec := &Watch{Watcher: w.id, Master: c.host.Name, After: after, Call: w.h.now()}
	defer w.h.addWatch(rec)
	ctx, cancel := context.WithTimeout(ctx, shortestWatch+time.Duration(w.dice.Int64N(int64(longestWatch-shortestWatch))))
	defer cancel()
	q := url.Values{"watch": {"true"}, "allowWatchBookmarks": {"true"}}
	if w.lists {
		q.Set("sendInitialEvents", "true")
		q.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchNotOlderThan))
	} else {
		q.Set("resourceVersion", strconv.FormatInt(after, 10))
	}
	resp, _, err := c.open(ctx, http.MethodGet, c.base+"?"+q.Encode(), nil)
	if err != nil {
		rec.End = err.Error()
		return rec
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	if resp.StatusCode != http.StatusOK {
		rec.End = resp.Status
		return rec
	}
	lines := json.NewDecoder(resp.Body)
	var list *Op
	if w.lists {
		list = &Op{Client: w.id, Master: rec.Master, Kind: List, Call: rec.Call, Outcome: OK}
	}
	for {
		var e struct {
			Type   string
			Object object
		}
		if err := lines.Decode(&e); err != nil {
			if rec.End = err.Error(); errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(ctx.Err(), context.Canceled) {
				rec.End = endedByUs
			}
			return rec
		}
		if e.Type == "ERROR" {
			rec.End = e.Object.Reason + ": " + e.Object.Message
			return rec
		}
		it := e.Object.item()
		if list != nil {
			if w.first(list, e.Type, &e.Object) {
				rec.After, list = list.Revision, nil
				rec.Reached = rec.After
			}
			continue
		}
		rec.Reached = max(rec.Reached, it.Revision)
		w.reached.Store(max(w.reached.Load(), it.Revision))
		if e.Type == Bookmark || of(w.h.Round, it.Key) {
			rec.Events = append(rec.Events, Event{Type: e.Type, At: w.h.now(), Item: it})
		}
	}
}

// first adds one of the objects that a watch begins with to a list. It reports whether the list is complete.
func (w *watcher) first(list *Op, kind string, o *object) bool {
	if it := o.item(); kind != Bookmark {
		if of(w.h.Round, it.Key) {
			list.Items = append(list.Items, it)
		}
		return false
	}
	if o.Metadata.Annotations[metav1.InitialEventsAnnotationKey] != "true" {
		return false
	}
	list.Return, list.Revision = w.h.now(), o.revision()
	w.h.add(list)
	return true
}
