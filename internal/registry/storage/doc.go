// Package storage holds the objects in the store and in memory: every object in its newest version, decoded once, the
// last changes, and the ways to read both (get, list, watch).
//
//	store -> one watch -> cache -> get, list, watch
//
// It promises: an acknowledged write is in every later read; a list is of one revision; a watch from the revision of
// a list misses and repeats nothing, even across a restart or a burst, or ends with 410 when the store has dropped
// the history in between; readers never block each other, and an idle watch costs nothing. Entries are shared: nobody
// may change them. Nothing depends on the order of fields in what is stored. An object whose bytes were damaged from
// outside is shown as damaged as soon as anything has decoded it, as the garbage collector decodes all but Events.
//
// The cache follows the store by a single watch over all kinds, not one per kind, because then "the cache is current"
// is one comparison: its revision against the store's. It keeps the last changes in a log that is bounded in bytes
// and age. Reads go to the store only for older data: pages of a list that has changed since, and history for
// watchers that are behind the log.
//
// The bytes of a kind of which there is much are compressed, each object's with a dictionary made of a few others: what objects of a kind
// say is mostly the same. Reading them costs about as much as a copy. What was deleted may stay in a dictionary for a while, so
// kinds that are confidential (api.Kind) have none.
//
// Objects of some kinds are implied by others (api.Implied): they are in the cache beside those that are stored, and lists and
// watches of these kinds that reach back further than the cache end with 410, because the store has not all of their history.
//
// registry calls it, and authorises reads beforehand. All its state is in the store; the cache is read anew at start.
//
// Its files:
//
//	entry.go siblings.go settle.go    one version of an object: its key, its bytes, the object; objects that share memory, and many readers
//	compress.go     the tree of a kind's newest objects, and how their bytes are kept small
//	cache.go log.go encodings.go    every object and the last changes, in memory
//	implied.go      objects that others imply
//	list.go watch.go selector.go    how they are read
//	errors.go       failures of the store as API errors
package storage
