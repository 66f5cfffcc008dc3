package registry

import (
	"context"
	"sort"
	"sync"
)

// change is one step of one object: next nil is a deletion, prev nil a creation.
type change struct {
	prev, next *Entry
	rev        int64
}

// eventLog is the last changes of a kind. Watchers are cursors on it: nothing is kept per watcher, and
// one that falls behind the window is told to list again.
type eventLog struct {
	changes []change
	first   int64 // number of changes[0], counted from the start of the process
	floor   int64 // changes after this revision are all here
	last    int64 // revision of the last change
	bytes   int   // of what the changes hold
	epoch   int   // counts restarts: cursors of an older epoch are lost
	more    chan struct{}
	moreMu  sync.Mutex
}

// The window: enough for a watcher to catch up after a pause, little enough to be held at idle.
const (
	maxLogChanges = 16384
	maxLogBytes   = 8 << 20
	minLogChanges = 128
)

func (l *eventLog) init() { l.more = make(chan struct{}) }

func (l *eventLog) append(c change) {
	l.changes = append(l.changes, c)
	l.bytes += c.size()
	l.last = c.rev
	drop := 0
	for n := len(l.changes); n-drop > maxLogChanges || n-drop > minLogChanges && l.bytes > maxLogBytes; drop++ {
		l.floor = l.changes[drop].rev
		l.bytes -= l.changes[drop].size()
		l.changes[drop] = change{}
	}
	if drop > 0 {
		l.changes = l.changes[drop:]
		l.first += int64(drop)
	}
	l.wake()
}

func (c change) size() int {
	if c.next != nil {
		return len(c.next.raw)
	}
	return len(c.prev.raw)
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

// cursor reads the log from a place on.
type cursor struct {
	kc    *kindCache
	next  int64
	epoch int
}

// cursorAt is a cursor for all changes after rev; false when the log does not reach back that far.
func (kc *kindCache) cursorAt(rev int64) (*cursor, bool) {
	kc.mu.RLock()
	defer kc.mu.RUnlock()
	if rev < kc.log.floor {
		return nil, false
	}
	i := sort.Search(len(kc.log.changes), func(i int) bool { return kc.log.changes[i].rev > rev })
	return &cursor{kc: kc, next: kc.log.first + int64(i), epoch: kc.log.epoch}, true
}

// read waits for changes and returns all there are, at most max; false when they are lost.
// wake, which may be nil, ends the wait early.
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
