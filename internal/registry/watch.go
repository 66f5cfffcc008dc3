package registry

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/api"
)

// WatchOptions says what to watch and from when. Namespace and Fields are those of the request.
type WatchOptions struct {
	Namespace string
	Labels    labels.Selector
	Fields    fields.Selector
	// Revision is where to go on. 0 with Initial: first everything there is; 0 without: from now.
	Revision int64
	// Initial sends every object as Added first, then a Bookmark with InitialEnd.
	Initial   bool
	Bookmarks bool
}

// Event is one change as a watcher sees it through its selector.
type Event struct {
	Type api.EventType
	// Entry is nil for a Bookmark.
	Entry      *Entry
	Revision   int64
	InitialEnd bool
}

// Watch is an open watch; call Next until it fails.
type Watch struct {
	r       *Registry
	kc      *kindCache
	sel     *selector
	cur     *cursor
	first   []*Entry // what there was at the beginning and is not yet sent
	pending []Event
	sent    int64 // revision up to which all was sent
	opts    WatchOptions
	tick    *time.Timer
}

// bookmarkEvery is how often a quiet watch that asked for bookmarks gets one.
const bookmarkEvery = time.Minute

// batchMax bounds what one Next returns.
const batchMax = 256

// Watch opens a watch. It costs nothing while nothing happens.
func (r *Registry) Watch(ctx context.Context, q *Request, opts WatchOptions) (*Watch, error) {
	if err := r.authorizeAs(ctx, "watch", q); err != nil {
		return nil, err
	}
	kind := q.Kind
	opts.Namespace, opts.Fields = q.Namespace, q.Fields
	sel, err := r.selector(kind, opts.Namespace, opts.Labels, opts.Fields)
	if err != nil {
		return nil, err
	}
	kc := r.cache.byRow[kind]
	w := &Watch{r: r, kc: kc, sel: sel, opts: opts}
	from := opts.Revision
	if opts.Initial || from == 0 {
		if err := r.cache.current(ctx); err != nil {
			return nil, storeErr(kind, "", err)
		}
		var entries []*Entry
		entries, from = r.cache.snapshot(kc, opts.Namespace, "")
		if opts.Revision > from {
			return nil, tooLargeRevision(opts.Revision, from)
		}
		if opts.Initial {
			w.first = entries
		}
	}
	if err := r.reached(ctx, kind, from); err != nil {
		return nil, err
	}
	cur, ok := kc.cursorAt(from)
	if !ok {
		return nil, expired(from)
	}
	w.cur, w.sent = cur, from
	return w, nil
}

// reached waits until the cache is at a revision that this server has given out: a client that watches
// from its own write's revision may be faster than the cache, and must not be sent that write.
func (r *Registry) reached(ctx context.Context, kind *api.Kind, rev int64) error {
	if r.cache.rev.Load() >= rev {
		return nil
	}
	if err := r.cache.current(ctx); err != nil {
		return storeErr(kind, "", err)
	}
	if now := r.cache.rev.Load(); now < rev {
		return tooLargeRevision(rev, now)
	}
	return nil
}

// initial is the next part of what there was at the beginning, and at its end a bookmark for those who want
// one. The objects themselves are the cache's: however many there are, all that is made here is a batch.
func (w *Watch) initial() []Event {
	n := min(len(w.first), batchMax)
	var out []Event
	for _, e := range w.first[:n] {
		if w.sel.matches(e) {
			out = append(out, Event{Type: api.Added, Entry: e, Revision: e.rev})
		}
	}
	if w.first = w.first[n:]; len(w.first) == 0 {
		w.first, w.opts.Initial = nil, false
		if w.opts.Bookmarks {
			out = append(out, Event{Type: api.Bookmark, Revision: w.sent, InitialEnd: true})
		}
	}
	return out
}

func expired(rev int64) error {
	return apierrors.NewResourceExpired("too old resource version: " + itoa(rev))
}

// timers are shared by bookmarks of all watches: one channel closed each minute, made only while a
// watch waits for it.
var bookmarkClock struct {
	sync.Mutex
	ch chan struct{}
}

func bookmarkTick() <-chan struct{} {
	c := &bookmarkClock
	c.Lock()
	defer c.Unlock()
	if c.ch == nil {
		ch := make(chan struct{})
		c.ch = ch
		time.AfterFunc(bookmarkEvery, func() {
			c.Lock()
			c.ch = nil
			c.Unlock()
			close(ch)
		})
	}
	return c.ch
}

// Next waits for events. It fails with Expired when the watcher was too slow, and returns nothing,
// without an error, when ctx has ended.
func (w *Watch) Next(ctx context.Context) ([]Event, error) {
	for {
		if len(w.pending) > 0 {
			out := w.pending
			w.pending = nil
			return out, nil
		}
		if w.opts.Initial {
			w.pending = w.initial()
			continue
		}
		var tick <-chan struct{}
		if w.opts.Bookmarks {
			tick = bookmarkTick()
		}
		before := w.r.cache.rev.Load()
		changes, ok := w.cur.read(ctx, batchMax, tick)
		if !ok {
			return nil, expired(w.sent)
		}
		if ctx.Err() != nil {
			return nil, nil
		}
		for _, c := range changes {
			w.sent = c.rev
			if e, shown := w.see(c); shown {
				w.pending = append(w.pending, e)
			}
		}
		if changes == nil && before > w.sent { // a quiet minute: everything up to before was read
			w.sent = before
			w.pending = append(w.pending, Event{Type: api.Bookmark, Revision: before})
		}
	}
}

// see is a change through the selector: an object that comes to match is Added, one that ceases to is
// Deleted.
func (w *Watch) see(c change) (Event, bool) {
	any := c.next
	if any == nil {
		any = c.prev
	}
	if !w.sel.inNamespace(any) {
		return Event{}, false
	}
	was := c.prev != nil && w.sel.matches(c.prev)
	is := c.next != nil && w.sel.matches(c.next)
	switch {
	case is && was:
		return Event{Type: api.Modified, Entry: c.next, Revision: c.rev}, true
	case is:
		return Event{Type: api.Added, Entry: c.next, Revision: c.rev}, true
	case was:
		return Event{Type: api.Deleted, Entry: c.prev.at(c.rev), Revision: c.rev}, true
	}
	return Event{}, false
}
