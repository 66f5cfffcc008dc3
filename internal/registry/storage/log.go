package storage

import (
	"context"
	"sort"
	"sync"
	"time"
)

// change is one change of one object: next is nil for a deletion, prev for a creation.
type change struct {
	prev, next *Entry
	rev        int64
	at         time.Time  // when it was read
	encodings  *Encodings // of next; for a deletion, of prev
}

// eventLog holds the last changes of a kind. Watchers are cursors on it: it keeps nothing per watcher. A watcher that
// falls behind the log reads the store's history until it has caught up.
type eventLog struct {
	changes []change
	first   int64 // number of changes[0], counted from the start of the process
	floor   int64 // all changes after this revision are here
	last    int64 // revision of the last change
	bytes   int   // sum of the changes' sizes
	epoch   int   // counts reloads: cursors of an older epoch are no longer valid
	more    chan struct{}
	moreMu  sync.Mutex
}

// The size of the log: large enough for a watcher to catch up after a pause without going to the store, small enough
// to keep while idle. It is bounded in bytes, whatever the size of an object.
const (
	maxLogChanges = 16384
	maxLogBytes   = 8 << 20
	maxLogAge     = 2 * time.Minute
)

func (l *eventLog) init() { l.more = make(chan struct{}) }

func (l *eventLog) append(c change) {
	c.at = time.Now()
	c.encodings = &Encodings{}
	l.changes = append(l.changes, c)
	if n := len(l.changes) - 1 - keptEncodings; n >= 0 {
		l.changes[n].encodings.drop()
	}
	l.bytes += c.size()
	l.last = c.rev
	l.trim(c.at)
	l.wake()
}

// trim drops what is more than the log may hold now.
func (l *eventLog) trim(now time.Time) {
	drop := 0
	for n := len(l.changes); n-drop > maxLogChanges || n > drop && (l.bytes > maxLogBytes || now.Sub(l.changes[drop].at) > maxLogAge); drop++ {
		l.floor = l.changes[drop].rev
		l.bytes -= l.changes[drop].size()
		l.changes[drop] = change{}
	}
	if drop > 0 {
		if l.changes = l.changes[drop:]; len(l.changes) == 0 {
			l.changes = nil
		}
		l.first += int64(drop)
	}
}

// record appends a change to the log. It is called with mu held.
func (kc *Objects) record(c change) {
	kc.log.append(c)
	if !kc.aging {
		kc.aging = true
		time.AfterFunc(maxLogAge, kc.age)
	}
}

// age drops old changes of a kind that is not written to any more: after a burst they would be kept for good.
func (kc *Objects) age() {
	kc.mu.Lock()
	defer kc.mu.Unlock()
	kc.log.trim(time.Now())
	if kc.aging = len(kc.log.changes) > 0; kc.aging {
		time.AfterFunc(maxLogAge, kc.age)
	}
}

// size is the memory that only this change keeps: the previous version. The cache holds the newest version anyway,
// until it becomes the prev of a later change. Only a few encodings are kept.
func (c change) size() int {
	const itself = 128
	if c.prev != nil {
		return itself + c.prev.Size() // about as much as its object takes, whose bytes may be compressed
	}
	return itself
}

func (l *eventLog) restart(rev int64) {
	l.first += int64(len(l.changes))
	l.changes, l.bytes = nil, 0
	l.floor, l.last = rev, rev
	l.epoch++
	l.wake()
}

func (l *eventLog) wake() {
	l.moreMu.Lock()
	close(l.more)
	l.more = make(chan struct{})
	l.moreMu.Unlock()
}

// cursor reads the log from one position on.
type cursor struct {
	kc    *Objects
	next  int64
	epoch int
}

// cursorAt returns a cursor for all changes after rev; false if the log does not reach back that far.
func (kc *Objects) cursorAt(rev int64) (*cursor, bool) {
	kc.mu.RLock()
	defer kc.mu.RUnlock()
	if rev < kc.log.floor {
		return nil, false
	}
	i := sort.Search(len(kc.log.changes), func(i int) bool { return kc.log.changes[i].rev > rev })
	return &cursor{kc: kc, next: kc.log.first + int64(i), epoch: kc.log.epoch}, true
}

// read waits for changes and returns at most max of them; false if they are no longer in the log. wake, which may be
// nil, ends the wait early.
func (c *cursor) read(ctx context.Context, max int, wake <-chan struct{}) ([]change, bool) {
	for {
		c.kc.log.moreMu.Lock()
		more := c.kc.log.more
		c.kc.log.moreMu.Unlock()
		c.kc.mu.RLock()
		l := &c.kc.log
		if c.epoch != l.epoch || c.next < l.first {
			c.kc.mu.RUnlock()
			return nil, false
		}
		if pending := l.changes[c.next-l.first:]; len(pending) > 0 {
			got := append([]change(nil), pending[:min(max, len(pending))]...)
			c.next += int64(len(got))
			c.kc.mu.RUnlock()
			return got, true
		}
		c.kc.mu.RUnlock()
		select {
		case <-more:
		case <-wake:
			return nil, true
		case <-ctx.Done():
			return nil, true
		}
	}
}
