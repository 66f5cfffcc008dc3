package storage

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"minik8s/internal/api"
	"minik8s/internal/store"
)

// WatchOptions says what to watch and from which revision. Namespace and Fields are the request's.
type WatchOptions struct {
	Namespace string
	Labels    labels.Selector
	Fields    fields.Selector
	// Revision is where to continue. If it is 0, Initial decides: with it, all objects come first; without it, the
	// watch starts now.
	Revision int64
	// Initial sends every object as Added first.
	Initial   bool
	Bookmarks bool
	// InitialEnd asks for a Bookmark right after the initial objects.
	InitialEnd bool
	// Same, if set, leaves out changes after which an object is still the same for the client. Bookmarks go past them.
	Same func(a, b api.Object) bool
}

// Event is one change as a watcher sees it through its selector.
type Event struct {
	Type api.EventType
	// Entry is nil for a Bookmark.
	Entry      *Entry
	Revision   int64
	InitialEnd bool
	// Encodings are the shared encodings of Entry for this change. It is nil for a Bookmark, for an initial object,
	// and for a change from history.
	Encodings *Encodings
}

// Watch is an open watch; call Next until it fails.
type Watch struct {
	kc      *Objects
	sel     *Selector
	cur     *cursor     // position in the log; nil while past is read
	past    store.Watch // the store's history, for changes older than the log
	first   []*Entry    // initial objects that are not yet sent
	pending []Event
	seen    int64 // everything up to this revision was read
	sent    int64 // revision of the last event or bookmark, from which the client would continue
	opts    WatchOptions
	tick    <-chan struct{}
}

// BookmarkEvery is how often a quiet watch that asked for bookmarks gets one.
const BookmarkEvery = time.Minute

// batchMax bounds what one Next returns.
const batchMax = 256

// Watch opens a watch. An idle watch costs nothing. The error is 410 if the history that it needs is gone.
func (c *Cache) Watch(ctx context.Context, kind *api.Kind, opts WatchOptions, sel *Selector) (*Watch, error) {
	kc := c.Of(kind)
	w := &Watch{kc: kc, sel: sel, opts: opts}
	from := opts.Revision
	if opts.Initial || from == 0 {
		if err := c.Current(ctx); err != nil {
			return nil, Error(kind, "", err)
		}
		var entries []*Entry
		entries, from = kc.Snapshot(opts.Namespace, "")
		if opts.Revision > from {
			return nil, tooLargeRevision(opts.Revision, from)
		}
		if opts.Initial {
			w.first = entries
		}
	}
	if err := c.reached(ctx, kind, from); err != nil {
		return nil, err
	}
	w.seen, w.sent = from, from
	if err := w.enter(ctx); err != nil {
		return nil, err
	}
	return w, nil
}

// reached waits until the cache is at a revision that this server has given out. A client that watches from the
// revision of its own write may be faster than the cache, and must not receive that write.
func (c *Cache) reached(ctx context.Context, kind *api.Kind, rev int64) error {
	if c.rev.Load() >= rev {
		return nil
	}
	if err := c.Current(ctx); err != nil {
		return Error(kind, "", err)
	}
	if now := c.rev.Load(); now < rev {
		return tooLargeRevision(rev, now)
	}
	return nil
}

// initial returns the next batch of the initial objects, and after the last one a bookmark if the client wants one.
// The objects are the cache's own, so only one batch is allocated, however many there are.
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
		if w.opts.InitialEnd {
			out = append(out, Event{Type: api.Bookmark, Revision: w.seen, InitialEnd: true})
		}
	}
	return out
}

// clock is one timer for the bookmarks of all watches. Its channel is closed after a while. A watch creates it when
// needed, so that no timer runs without watches.
type clock struct {
	every time.Duration

	sync.Mutex
	ch chan struct{}
}

func (c *clock) tick() <-chan struct{} {
	c.Lock()
	defer c.Unlock()
	if c.ch == nil {
		ch := make(chan struct{})
		c.ch = ch
		time.AfterFunc(c.every, func() {
			c.Lock()
			if c.ch == ch {
				c.ch = nil
			}
			c.Unlock()
			close(ch)
		})
	}
	return c.ch
}

// enter finds where to continue after w.seen: in the log, or in the store's history if the log does not reach back
// that far, as after a restart or a burst.
func (w *Watch) enter(ctx context.Context) error {
	if cur, ok := w.kc.cursorAt(w.seen); ok {
		w.cur = cur
		return nil
	}
	if !w.kc.complete() {
		return expired(w.seen)
	}
	past, err := w.kc.cache.store.History(ctx, w.kc.prefix, w.seen)
	if errors.Is(err, store.ErrCompacted) {
		return expired(w.seen)
	}
	w.past = past
	return Error(w.kc.kind, "", err)
}

// changes waits for the next changes, at most batchMax of them from the log. It returns none if the tick woke it.
func (w *Watch) changes(ctx context.Context) ([]change, error) {
	for ctx.Err() == nil {
		if w.cur != nil {
			// The order matters: a change enters the log before the cache's revision includes it. If the log then has
			// nothing to read, everything up to before has been read.
			before := w.kc.cache.rev.Load()
			got, ok := w.cur.read(ctx, batchMax, w.tick)
			switch {
			case ok && len(got) > 0:
				w.seen = got[len(got)-1].rev
				return got, nil
			case ok:
				w.seen = max(w.seen, before) // there was nothing to read up to this revision
				return nil, nil
			}
			w.cur = nil // the watch was too slow for the log
			if err := w.enter(ctx); err != nil {
				return nil, err
			}
			continue
		}
		select {
		case batch, ok := <-w.past.Batches():
			if ok {
				w.seen = batch.Revision
				return w.kc.changesOf(batch), nil
			}
			err := w.past.Err()
			w.past = nil
			if errors.Is(err, store.ErrCompacted) {
				return nil, expired(w.seen)
			}
			if err != nil {
				return nil, Error(w.kc.kind, "", err)
			}
			if err := w.kc.cache.Reach(ctx, w.seen); err != nil {
				return nil, nil //nolint:nilerr // ctx has ended
			}
			if err := w.enter(ctx); err != nil {
				return nil, err
			}
		case <-ctx.Done():
		}
	}
	return nil, nil
}

// changesOf converts a batch of history to changes.
func (kc *Objects) changesOf(batch store.Batch) []change {
	var out []change
	for _, e := range batch.Events {
		c := change{rev: e.KV.Modified}
		key := e.KV.Key[len(kc.prefix):]
		if e.Prev != nil {
			c.prev = &Entry{kind: kc.kind, key: key, rev: e.Prev.Modified, text: e.Prev.Value}
		}
		if e.Type == store.Put {
			c.next = &Entry{kind: kc.kind, key: key, rev: e.KV.Modified, text: e.KV.Value}
		}
		if c.prev != nil || c.next != nil {
			out = append(out, c)
		}
	}
	return out
}

// Next waits for events. It fails with Expired (410) when the history that it needs is gone. When ctx has ended, it
// returns nothing and no error.
func (w *Watch) Next(ctx context.Context) ([]Event, error) {
	for {
		if len(w.pending) > 0 {
			out := w.pending
			w.pending = nil
			w.sent = max(w.sent, out[len(out)-1].Revision)
			return out, nil
		}
		if w.opts.Initial {
			w.pending = w.initial()
			continue
		}
		if w.opts.Bookmarks && w.tick == nil {
			w.tick = w.kc.cache.bookmarks.tick()
		}
		changes, err := w.changes(ctx)
		if err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, nil
		}
		for _, c := range changes {
			if e, shown := w.see(c); shown {
				w.pending = append(w.pending, e)
			}
		}
		w.bookmark()
	}
}

// bookmark tells a client once a minute up to which revision everything was read, even if its selector matches none
// of the changes. When the client comes back, it need not read them again.
func (w *Watch) bookmark() {
	select {
	case <-w.tick: // never, if no bookmarks were requested
	default:
		return
	}
	w.tick = nil
	if len(w.pending) == 0 && w.seen > w.sent {
		w.pending = append(w.pending, Event{Type: api.Bookmark, Revision: w.seen})
	}
}

// see applies the selector to a change: an object that starts to match is Added, one that stops matching is Deleted.
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
	case is && was && w.opts.Same != nil && w.opts.Same(c.prev.Object(), c.next.Object()):
		return Event{}, false
	case is && was:
		return Event{Type: api.Modified, Entry: c.next, Revision: c.rev, Encodings: c.encodings}, true
	case is:
		return Event{Type: api.Added, Entry: c.next, Revision: c.rev, Encodings: c.encodings}, true
	case was:
		return Event{Type: api.Deleted, Entry: c.prev.at(c.rev), Revision: c.rev, Encodings: c.encodings}, true
	}
	return Event{}, false
}
