// Package registry is what the API means: one flow of create, update, patch, delete, list and watch
// for all kinds, and a table with a strategy per kind for what is the kind's own.
//
//	request -> authorisation -> dialect -> decode -> defaults -> validation -> admission -> guarded write -> store
//	store -> one watch -> cache (each object decoded once) -> get, list, watch
//
// It promises: an acknowledged write is on disk and in every later read; a write with a stale
// resourceVersion is refused (409) and changes nothing; every mistake of a manifest is named at once
// with its path (422); a watch from the revision of a list misses and repeats nothing, also over a restart or
// a burst, or ends with 410 when the store has dropped the history in between. Objects it hands out are shared: nobody may change them.
//
// The cache follows the store by a single watch over all kinds, not one per kind, because then "the
// cache is current" is one comparison: its revision against the store's. It keeps the last changes in a log that is bounded
// in bytes and age. Reads go to the store only for what is older: pages of a list that has changed since, and
// the history for watchers that the log does not reach back to.
//
// Who may do what has one door: a Request goes through Authorize before anything is read, so that a refusal
// tells no names, and through the steps of admission once its object is known.
//
// Callers are apiserver and client/local. All its state is the store's; the cache is read anew at
// start.
package registry
