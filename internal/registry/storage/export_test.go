package storage

import "time"

// BookmarkEvery has bookmarks sent more often, for tests, until restore is called.
func BookmarkEvery(d time.Duration) (restore func()) {
	set := func(d time.Duration) (old time.Duration) {
		bookmarkClock.Lock()
		defer bookmarkClock.Unlock()
		old, bookmarkEvery, bookmarkClock.ch = bookmarkEvery, d, nil
		return old
	}
	old := set(d)
	return func() { set(old) }
}
