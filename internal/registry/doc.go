// Package registry is what the API means: one flow of create, update, patch, delete, list and watch
// for all kinds. What is a kind's own is its strategy, a row of package strategy.
//
//	request -> authorisation -> dialect -> decode -> defaults -> validation -> admission -> guarded write -> store
//	store -> one watch -> cache (each object decoded once) -> get, list, watch
//
// It promises: an acknowledged write is on disk and in every later read; a write with a stale
// resourceVersion is refused (409) and changes nothing; every mistake of a manifest is named at once
// with its path (422); a watch from the revision of a list misses and repeats nothing, also over a restart or
// a burst, or ends with 410 when the store has dropped the history in between; what only one object may have is
// given once (Strategy.Exclusive). Objects it hands out are shared: nobody may change them.
//
// The cache follows the store by a single watch over all kinds, not one per kind, because then "the
// cache is current" is one comparison: its revision against the store's. It keeps the last changes in a log that is bounded
// in bytes and age. Reads go to the store only for what is older: pages of a list that has changed since, and
// the history for watchers that the log does not reach back to.
//
// Who may do what has one door: a Request goes through Authorize before anything is read, so that a refusal
// tells no names, and through the steps of admission once its object is known.
//
// A kind that is not compiled in comes by AddKind; everything follows the table of Kinds.
//
// Callers are apiserver and client/local. All its state is the store's; the cache is read anew at
// start.
//
// Its files:
//
//	registry.go     the Registry, Strategy, the kinds it serves
//	request.go      who wants what; authorize.go and rules.go say who may, questions.go answers those who ask
//	admission.go    what a write has to pass beside its own validation
//	create.go update.go delete.go patch.go applypatch.go    the flow of each write; packages patch and apply change documents
//	write.go        the transaction they end in, and what it relies on
//	binding.go evict.go scale.go tokens.go                  subresources that are more than a part of an object
//	shallow.go      copies; package decode has the way from a client's bytes to an object
//	cache.go log.go entry.go encodings.go                       every object and the last changes, in memory
//	list.go watch.go view.go                                how they are read
//	ensure.go       the objects that every cluster has
package registry
