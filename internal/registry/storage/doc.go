// Package storage is the objects in the store and in memory: every object in its last version, decoded once, the last
// changes, and how both are read (get, list, watch).
//
//	store -> one watch -> cache -> get, list, watch
//
// It promises: an acknowledged write is in every later read; a list is of one revision; a watch from the revision of a
// list misses and repeats nothing, also over a restart or a burst, or ends with 410 when the store has dropped the history
// in between; a reader is never blocked by others, and a watch that nothing happens to costs nothing. Entries are shared:
// nobody may change them.
//
// The cache follows the store by a single watch over all kinds, not one per kind, because then "the cache is current" is
// one comparison: its revision against the store's. It keeps the last changes in a log that is bounded in bytes and age.
// Reads go to the store only for what is older: pages of a list that has changed since, and the history for watchers that
// the log does not reach back to.
//
// registry calls it, and decides before who may read what. All its state is the store's; the cache is read anew at start.
//
// Its files:
//
//	entry.go        one version of an object: its key, its bytes, the object
//	cache.go log.go encodings.go    every object and the last changes, in memory
//	list.go watch.go selector.go    how they are read
//	errors.go       what a failure of the store is to a client
package storage
